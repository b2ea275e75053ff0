"""What `slicewise analyse` does, as the published studies did it: dpkt and dictionaries.

Usage: with_dpkt.py SENT RECEIVED. Prints packets and seconds as JSON, and a few figures so that both
sides can be seen to agree.
"""

import json
import sys
import time

import dpkt

BIN = 0.05


def packets(path):
    with open(path, "rb") as file:
        for timestamp, frame in dpkt.pcap.Reader(file):
            length = len(frame)
            ip = dpkt.ethernet.Ethernet(frame).data
            if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, dpkt.udp.UDP):
                continue
            udp = ip.data
            key = (ip.src, ip.dst, ip.p, udp.sport, udp.dport, ip.id, bytes(udp.data[:16]))
            yield float(timestamp), ip.len + 14, key


def main():
    started = time.perf_counter()
    sent, count, offered, throughput, lost, delays = {}, 0, {}, {}, {}, []
    first = None
    for at, length, key in packets(sys.argv[1]):
        count += 1
        first = at if first is None else first
        sent[key] = at
        index = int((at - first) / BIN)
        offered[index] = offered.get(index, 0) + length
    for at, length, key in packets(sys.argv[2]):
        count += 1
        index = int((at - first) / BIN)
        throughput[index] = throughput.get(index, 0) + length
        sent_at = sent.pop(key, None)
        if sent_at is not None:
            delays.append(at - sent_at)
    for at in sent.values():
        index = int((at - first) / BIN)
        lost[index] = lost.get(index, 0) + 1
    delays.sort()
    elapsed = time.perf_counter() - started
    print(
        json.dumps(
            {
                "packets": count,
                "seconds": elapsed,
                "lost": len(sent),
                "p50_us": round(delays[len(delays) // 2] * 1e6, 1),
                "p99_us": round(delays[len(delays) * 99 // 100] * 1e6, 1),
            }
        )
    )


main()
