#!/usr/bin/env python3
"""Makes the golden captures beside it: the same packets in every format, order and link layer.

Needs editcap (Wireshark), gzip and zstd. The files are committed; run it again only to change them.
"""

import gzip
import pathlib
import socket
import struct
import subprocess

HERE = pathlib.Path(__file__).parent
ETHERNET = bytes.fromhex("020000000002 020000000001")
START_S = 1_700_000_000


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(protocol, payload, ident, source="10.0.0.1", destination="10.1.0.2", tos=0xB8, pieces=0x4000, ttl=64):
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), ident, pieces, ttl, protocol, 0) + addresses
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def ipv6(first, payload, tos=0x28, hops=63):
    addresses = socket.inet_pton(socket.AF_INET6, "2001:db8::1") + socket.inet_pton(socket.AF_INET6, "2001:db8:1::2")
    return struct.pack("!IHBB", 6 << 28 | tos << 20 | 0x12345, len(payload), first, hops) + addresses + payload


def with_checksum(protocol, segment, at, source="10.0.0.1", destination="10.1.0.2"):
    pseudo = socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack("!BBH", 0, protocol, len(segment))
    return segment[:at] + struct.pack("!H", checksum(pseudo + segment)) + segment[at + 2:]


def udp(source, destination, payload):
    return struct.pack("!HHHH", source, destination, 8 + len(payload), 0) + payload


def tcp(sequence, acknowledgement, flags, payload):
    options = bytes.fromhex("0101080a0001020300040506")
    head = struct.pack("!HHIIBBHHH", 43000, 5201, sequence, acknowledgement, 0x80, flags, 502, 0, 0)
    return head + options + payload


def iperf(number, length):
    """What iperf3 puts first: seconds, microseconds, number."""
    return struct.pack("!III", 1, 2, number) + bytes(i & 0xFF for i in range(length - 12))


ONE = ipv4(17, with_checksum(17, udp(40000, 5201, iperf(1, 100)), 6), 1)
TWO = ipv4(6, with_checksum(6, tcp(1000, 2000, 0x18, b"GET / HTTP/1.1\r\n" * 8), 16), 2, tos=0x02)
HOP_BY_HOP = bytes.fromhex("3c00 050200000100")
DESTINATION = bytes.fromhex("1100 010400000000")
THREE = ipv6(0, HOP_BY_HOP + DESTINATION + udp(40001, 5201, iperf(3, 60)))
FIRST_PIECE = ipv4(17, udp(40002, 5201, iperf(4, 1000))[:64], 4, pieces=0x2000)
LATER_PIECE = ipv4(17, udp(40002, 5201, iperf(4, 1000))[64:128], 4, pieces=8)
PIECE_6 = ipv6(44, bytes.fromhex("1100 0001 00000007") + udp(40003, 5201, iperf(5, 24)))
PING = ipv4(1, bytes.fromhex("0800f7ff00000000"), 6)
SMALL = ipv4(17, udp(40004, 53, b"?"), 7)
SCTP = ipv4(132, struct.pack("!HHII", 36412, 36412, 0xCAFE, 0) + bytes.fromhex("0e000004"), 8)
# The first packet again, in a tunnel: container with QoS flow 9.
INNER = ipv4(17, with_checksum(17, udp(40000, 5201, iperf(1, 100)), 6), 1, ttl=61)
GTP_U = bytes.fromhex("34ff") + struct.pack("!HI", len(INNER) + 8, 0x1234) + bytes.fromhex("00000085 01100900") + INNER
TUNNEL = ipv4(17, udp(2152, 2152, GTP_U), 9, "172.16.0.1", "172.16.0.2", tos=0)
IP_PACKETS = [ONE, TWO, THREE, FIRST_PIECE, LATER_PIECE, PIECE_6, PING, SMALL, SCTP, TUNNEL]


def ethertype(packet):
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


def ethernet(packet, tags=b""):
    frame = ETHERNET + tags + struct.pack("!H", ethertype(packet)) + packet
    return frame + b"\0" * (60 - len(frame))


ARP = ETHERNET + bytes.fromhex("0806 0001080006040001 0200000000010a000001 0000000000000a000002") + b"\0" * 18
FRAMES = [ethernet(p) for p in IP_PACKETS] + [
    ethernet(ONE, bytes.fromhex("8100a064")),
    ethernet(ONE, bytes.fromhex("88a8000a 81000014")),
    ethernet(ONE, bytes.fromhex("9100000a 81000014 8100001e")),
    ARP,
    ETHERNET + bytes.fromhex("88cc 0207040200000000010000") + b"\0" * 35,
]


def pcap(link, frames, order="<", snap=262144):
    out = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for number, frame in enumerate(frames):
        held = frame[:snap]
        out += struct.pack(order + "IIII", START_S, 1000 * number + 7, len(held), len(frame)) + held
    return out


def write(name, data):
    (HERE / name).write_bytes(data)


def editcap(*arguments):
    subprocess.run(["editcap", *arguments], cwd=HERE, check=True)


write("ethernet.pcap", pcap(1, FRAMES))
write("big-endian.pcap", pcap(1, FRAMES, ">"))
write("snap-96.pcap", pcap(1, FRAMES, snap=96))
write("snap-40.pcap", pcap(1, FRAMES, snap=40))
write("raw.pcap", pcap(101, IP_PACKETS))
write("null.pcap", pcap(0, [struct.pack("<I", 2 if p[0] >> 4 == 4 else 30) + p for p in IP_PACKETS]))
SLL = [struct.pack("!HHH8sH", 4 if i % 2 else 0, 1, 6, ETHERNET[6:] + b"\0\0", ethertype(p)) + p
       for i, p in enumerate(IP_PACKETS)]
write("cooked-v1.pcap", pcap(113, SLL))
SLL2 = [struct.pack("!HHIHBB8s", ethertype(p), 0, 3, 1, 4 if i % 2 else 0, 6, ETHERNET[6:] + b"\0\0") + p
        for i, p in enumerate(IP_PACKETS)]
write("cooked-v2.pcap", pcap(276, SLL2, snap=96))
editcap("-F", "nsecpcap", "ethernet.pcap", "nanoseconds.pcap")
editcap("-F", "modpcap", "ethernet.pcap", "modified.pcap")
editcap("-F", "pcapng", "ethernet.pcap", "ethernet.pcapng")
write("ethernet.pcap.gz", gzip.compress((HERE / "ethernet.pcap").read_bytes(), mtime=0))
subprocess.run(["zstd", "-qf", "ethernet.pcap", "-o", "ethernet.pcap.zst"], cwd=HERE, check=True)


def block(order, kind, body):
    length = 12 + len(body)
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order, comment=b""):
    fields = option(order, 1, comment) + option(order, 0, b"") if comment else b""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + fields)


def interface(order, link, name, resolution, offset_s=0):
    fields = option(order, 2, name) + option(order, 9, bytes([resolution]))
    fields += option(order, 14, struct.pack(order + "q", offset_s)) + option(order, 0, b"")
    return block(order, 1, struct.pack(order + "HHI", link, 0, 0) + fields)


def packet(order, number, units, frame, flags=None):
    body = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)) + frame
    body += b"\0" * (-len(frame) % 4)
    if flags is not None:
        body += option(order, 2, struct.pack(order + "I", flags)) + option(order, 0, b"")
    return block(order, 6, body)


def statistics(order, number, dropped):
    fields = option(order, 5, struct.pack(order + "Q", dropped)) + option(order, 7, struct.pack(order + "Q", 1))
    return block(order, 5, struct.pack(order + "III", number, 0, 0) + fields)


mixed = section("<", b"slicewise start_ns=1700000000000000000")
mixed += interface("<", 1, b"eth0", 9) + interface("<", 101, b"tun0", 0x80 | 20, START_S)
mixed += packet("<", 0, START_S * 10**9 + 5, FRAMES[0], flags=1)
mixed += packet("<", 1, 1 << 19, TWO, flags=2)  # half a second after the offset
mixed += block("<", 3, struct.pack("<I", len(FRAMES[0])) + FRAMES[0] + b"\0" * (-len(FRAMES[0]) % 4))
mixed += block("<", 0x7777, b"\1\2\3\4")
mixed += statistics("<", 0, 3) + statistics("<", 0, 5)
mixed += section(">") + interface(">", 1, b"eth1", 3)
mixed += packet(">", 0, (START_S + 1) * 1000, FRAMES[0])
mixed += block(">", 2, struct.pack(">HHIIII", 0, 0, *divmod((START_S + 2) * 1000, 1 << 32), len(FRAMES[6]), len(FRAMES[6]))
               + FRAMES[6] + b"\0" * (-len(FRAMES[6]) % 4))
mixed += packet(">", 0, START_S * 1000, FRAMES[6])
write("mixed.pcapng", mixed)

# Seeds of the fuzz targets: these files, and single frames with the number of their link type before.
CORPUS = HERE.parents[3] / "fuzz" / "corpus"
for target, names in {
    "pcap": ["big-endian.pcap", "cooked-v1.pcap", "cooked-v2.pcap", "ethernet.pcap.gz", "ethernet.pcap.zst",
             "nanoseconds.pcap", "null.pcap", "raw.pcap", "snap-96.pcap"],
    "pcapng": ["ethernet.pcapng", "mixed.pcapng"],
}.items():
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for name in names:
        (CORPUS / target / name).write_bytes((HERE / name).read_bytes())
(CORPUS / "frame").mkdir(parents=True, exist_ok=True)
for link, prefix, frames in [(1, "ethernet", FRAMES), (113, "cooked-v1", SLL[:3]), (276, "cooked-v2", SLL2[:3]), (101, "raw", IP_PACKETS[:3])]:
    for number, frame in enumerate(frames):
        (CORPUS / "frame" / f"{prefix}-{number:02}").write_bytes(struct.pack("!H", link) + frame)
single = section("<") + interface("<", 1, b"eth0", 6)
for name, bits in {
    "empty-section": section(">"),
    "one-packet": single + packet("<", 0, START_S * 10**6, FRAMES[0]),
    "tunnel": single + packet("<", 0, START_S * 10**6, FRAMES[9], flags=2),
}.items():
    (CORPUS / "pcapng" / name).write_bytes(bits)
