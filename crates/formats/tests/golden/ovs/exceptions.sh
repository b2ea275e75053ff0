ovs-vsctl -- set Port eth0 qos=@newqos \
  -- --id=@newqos create QoS type=linux-htb other_config:max-rate=500000000 queues=0=@q0,1=@q1 \
  -- --id=@q0 create Queue other-config={min-rate=1000000,max-rate=400000000} \
  -- --id=@q1 create Queue other-config:min-rate=100000000 dscp=46
ovs-ofctl add-flow br0 'priority=300,udp,tp_dst=53,actions=set_queue:0,normal'
ovs-ofctl add-flow br0 'priority=200,udp,actions=set_queue:1,normal'
ovs-ofctl add-flow br0 'priority=200,dl_vlan=10,tcp6,ipv6_src=2001:db8::/32,actions=set_queue:1,normal'
