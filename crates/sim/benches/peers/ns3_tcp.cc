// The load of `tcp.yaml` in ns-3: bulk transfers (New Reno, SACK, time stamps) over 10 Gbit/s with full-size frames.
//
// ns3_tcp --flows=N --seconds=S
//
// Prints one line of JSON: data packets that arrived, processor time of the simulation in seconds, and goodput.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <cstdio>
#include <ctime>

using namespace ns3;

namespace {

constexpr uint32_t SEGMENT_BYTES = 1448;
constexpr uint16_t FIRST_PORT = 10000;

double ProcessorSeconds() {
    timespec at{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

} // namespace

int main(int argc, char **argv) {
    uint32_t flows = 10;
    double seconds = 0.1;
    CommandLine command;
    command.AddValue("flows", "connections", flows);
    command.AddValue("seconds", "simulated time", seconds);
    command.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer nodes;
    nodes.Create(3);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    link.SetChannelAttribute("Delay", StringValue("20us"));
    InternetStackHelper().Install(nodes);
    TrafficControlHelper queue;
    queue.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("4000p"));
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    Ipv4InterfaceContainer receiver;
    for (uint32_t hop = 0; hop < 2; ++hop) {
        NetDeviceContainer devices = link.Install(nodes.Get(hop), nodes.Get(hop + 1));
        queue.Install(devices);
        receiver = addresses.Assign(devices);
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    for (uint32_t flow = 0; flow < flows; ++flow) {
        const auto port = static_cast<uint16_t>(FIRST_PORT + flow);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(2)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receiver.GetAddress(1), port));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
        bulk.Install(nodes.Get(0)).Start(MicroSeconds(10 * flow));
    }

    Simulator::Stop(Seconds(seconds));
    const double before = ProcessorSeconds();
    Simulator::Run();
    const double taken = ProcessorSeconds() - before;

    uint64_t bytes = 0;
    for (uint32_t sink = 0; sink < sinks.GetN(); ++sink) {
        bytes += DynamicCast<PacketSink>(sinks.Get(sink))->GetTotalRx();
    }
    std::printf("{\"packets\":%llu,\"seconds\":%.4f,\"goodput_gbps\":%.3f}\n",
                static_cast<unsigned long long>(bytes / SEGMENT_BYTES), taken,
                static_cast<double>(bytes) * 8 / seconds / 1e9);
    Simulator::Destroy();
    return 0;
}
