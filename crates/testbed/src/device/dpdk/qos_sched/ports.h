/* The two virtual interfaces. */
#ifndef PORTS_H
#define PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mempool.h>

struct interfaces {
	const char *in;
	const char *out;
	/* Longest frame, with its tags. */
	uint32_t frame_bytes;
	/* Frames in the ring between the kernel and each. */
	uint32_t ring_frames;
};

/* False, with a message, where this process may not have packet sockets, with which the driver works. */
bool ports_are_permitted(void);
/* False, with a message, where one is missing before the library looks for it. */
bool ports_exist(const struct interfaces *interfaces);
/* The arguments with which the library finds them; each of at most `bytes` characters. */
void port_device(char *argument, size_t bytes, unsigned number, const struct interfaces *interfaces);
/* False, with a message, where one cannot be used. */
bool ports_start(struct rte_mempool *pool, uint32_t ring_frames);
void ports_stop(void);
/* False, with a message, where one is gone or down. */
bool ports_are_up(const struct interfaces *interfaces);
/* Frames that found no room in the ring of an interface since the last call for it. */
uint64_t ports_missed(const char *interface);

#endif
