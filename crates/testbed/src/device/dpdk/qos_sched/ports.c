#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "ports.h"
#include "qos_sched.h"

#define PORTS 2
/* What the kernel puts before each frame of a ring, with room for its alignment. */
#define FRAME_HEADER 128

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

bool ports_are_permitted(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		complain("packet sockets are not permitted (%s): run as root", strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

bool ports_exist(const struct interfaces *interfaces)
{
	const char *const names[PORTS] = {interfaces->in, interfaces->out};

	for (int i = 0; i < PORTS; i++) {
		if (if_nametoindex(names[i]) != 0)
			continue;
		complain("there is no interface %s: leave the namespaces of a testbed alone, and start the study again", names[i]);
		return false;
	}
	return true;
}

void port_device(char *argument, size_t bytes, unsigned number, const struct interfaces *interfaces)
{
	uint32_t frame = power_of_two(interfaces->frame_bytes + FRAME_HEADER);
	uint32_t block = RTE_MAX(frame, 4096u);

	snprintf(argument, bytes, "--vdev=net_af_packet%u,iface=%s,blocksz=%u,framesz=%u,framecnt=%u", number,
		 number == 0 ? interfaces->in : interfaces->out, block, frame, interfaces->ring_frames);
}

static bool port_start(uint16_t port, struct rte_mempool *pool, uint32_t ring_frames)
{
	/* No offload: the driver puts a tag that the kernel took off back into the frame. */
	struct rte_eth_conf configuration = {0};
	int socket = rte_eth_dev_socket_id(port);
	int error = rte_eth_dev_configure(port, 1, 1, &configuration);

	if (error == 0)
		error = rte_eth_rx_queue_setup(port, 0, (uint16_t)ring_frames, (unsigned)socket, NULL, pool);
	if (error == 0)
		error = rte_eth_tx_queue_setup(port, 0, (uint16_t)ring_frames, (unsigned)socket, NULL);
	if (error == 0)
		error = rte_eth_dev_start(port);
	if (error == 0)
		error = rte_eth_promiscuous_enable(port);
	if (error != 0)
		complain("interface %u cannot be used: %s", port, strerror(-error));
	return error == 0;
}

bool ports_start(struct rte_mempool *pool, uint32_t ring_frames)
{
	if (rte_eth_dev_count_avail() != PORTS) {
		complain("the driver net_af_packet took %u of 2 interfaces, and both are there: apt-get install --reinstall "
			 "libdpdk-dev", rte_eth_dev_count_avail());
		return false;
	}
	for (uint16_t port = 0; port < PORTS; port++)
		if (!port_start(port, pool, ring_frames))
			return false;
	return true;
}

void ports_stop(void)
{
	for (uint16_t port = 0; port < PORTS; port++) {
		rte_eth_dev_stop(port);
		rte_eth_dev_close(port);
	}
}

/* Not IFF_RUNNING: the kernel sets it up to a second after the other end is up. */
static bool is_up(int fd, const char *interface)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP))
		return true;
	complain("interface %s is gone or down while the device runs: leave the namespaces of a testbed alone, and start the "
		 "study again", interface);
	return false;
}

bool ports_are_up(const struct interfaces *interfaces)
{
	static int fd = -1;

	if (fd < 0)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		complain("the state of interfaces cannot be read: %s", strerror(errno));
		return false;
	}
	return is_up(fd, interfaces->in) && is_up(fd, interfaces->out);
}

/* The kernel counts them at the driver's packet socket, which the driver does not read: its sockets are found among the
 * open files by the interface to which they are bound. */
static uint64_t missed_at(int fd, int interface)
{
	struct sockaddr_ll address = {0};
	socklen_t length = sizeof(address);
	struct tpacket_stats stats = {0};
	socklen_t stats_length = sizeof(stats);

	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0 || address.sll_family != AF_PACKET ||
	    address.sll_ifindex != interface)
		return 0;
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &stats_length) != 0)
		return 0;
	return stats.tp_drops;
}

uint64_t ports_missed(const char *interface)
{
	int index = (int)if_nametoindex(interface);
	DIR *open_files = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t missed = 0;

	while (open_files != NULL && (entry = readdir(open_files)) != NULL)
		missed += missed_at(atoi(entry->d_name), index);
	if (open_files != NULL)
		closedir(open_files);
	return missed;
}
