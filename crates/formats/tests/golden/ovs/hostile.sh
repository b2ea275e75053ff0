ovs-vsctl set port eth1 qos=@qos -- --id=@qos create qos type=linux-htb other-config:max-rates=10 queues:1=@q1
ovs-vsctl -- --id=@q1 create queue other-config:min-rate=200 other-config:max-rate=100
ovs-vsctl -- create queue other-config:min-rate=1
ovs-vsctl -- --id=@q2 create queue other-config:priority=1
ovs-vsctl -- --id=@q3 create queue other-config:min-rate=1m
ovs-vsctl -- --id=@q4 create qos type=linux-hfsc
ovs-vsctl set bridge br0 fail-mode=secure
ovs-vsctl list qos
ovs-vsctl --id=@q5 create queue other-config
ovs-ofctl add-flow br0 nw_src=10.0.0.1,actions=normal
ovs-ofctl add-flow br0 ip,nw_src=10.0.0.300,actions=normal
ovs-ofctl add-flow br0 ip,tp_dst=80,actions=normal
ovs-ofctl add-flow br0 arp,actions=normal
ovs-ofctl add-flow br0 ip,nw_dest=10.0.0.1,actions=normal
ovs-ofctl add-flow br0 ip,actions=set_queue:1
ovs-ofctl add-flow br0 ip,actions=drop
ovs-ofctl add-flow br0 ip,actions=set_queue:1,set_queue:2,normal
ovs-ofctl add-flow br0 in_port=1,actions=normal
ovs-ofctl add-flows br0 flows.txt
ovs-ofctl add-flow br0 "ip,nw_src=$HOST,actions=normal"
tc qdisc show
