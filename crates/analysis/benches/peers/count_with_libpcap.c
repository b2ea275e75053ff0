/* The least a program on libpcap can do: count packets and bytes of the files it is given. */
#include <pcap/pcap.h>
#include <stdio.h>

int main(int argc, char **argv) {
    unsigned long long packets = 0, bytes = 0;
    for (int i = 1; i < argc; i++) {
        char problem[PCAP_ERRBUF_SIZE];
        pcap_t *capture = pcap_open_offline(argv[i], problem);
        if (!capture) {
            fprintf(stderr, "%s\n", problem);
            return 1;
        }
        struct pcap_pkthdr *header;
        const unsigned char *data;
        while (pcap_next_ex(capture, &header, &data) == 1) {
            packets++;
            bytes += header->len;
        }
        pcap_close(capture);
    }
    printf("%llu packets, %llu bytes\n", packets, bytes);
    return 0;
}
