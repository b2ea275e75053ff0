# Two virtual queues (minimum and maximum rate each) on the port to h3: the source chooses the queue.
ovs-vsctl set port eth3 qos=@newqos \
  -- --id=@newqos create qos type=linux-htb other-config:max-rate=1000000000 queues:1=@q1 queues:2=@q2 \
  -- --id=@q1 create queue other-config:min-rate=640000000 other-config:max-rate=640000000 external-ids:name=h1 \
  -- --id=@q2 create queue other-config:min-rate=100000000 other-config:max-rate=100000000 other-config:burst=800000
ovs-ofctl add-flow br0 "in_port=1,ip,nw_src=10.0.0.1,actions=set_queue:1,normal"
ovs-ofctl -O OpenFlow13 add-flow br0 priority=100,tcp,nw_src=10.0.0.2,tp_dst=0x1000/0xf000,actions=set_queue:2,output:3
# A file of flows has one a line.
priority=50, ip, nw_src=10.0.0.2/255.255.255.255 actions=enqueue:3:2
priority=0, actions=normal
