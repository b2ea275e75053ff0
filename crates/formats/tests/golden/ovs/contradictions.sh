ovs-vsctl set port eth1 qos=@qos \
  -- --id=@qos create qos type=linux-htb queues:1=@q1 queues:2=@q3 \
  -- --id=@q1 create queue other-config:min-rate=100 external-ids:name=class-default \
  -- --id=@q2 create queue other-config:min-rate=100
ovs-ofctl add-flow br0 tcp,nw_src=10.0.0.1,actions=set_queue:1,normal
ovs-ofctl add-flow br0 ip,nw_dst=10.0.0.2,actions=set_queue:2,normal
ovs-ofctl add-flow br0 priority=3,udp,actions=set_queue:7,normal
