/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The version node IBVERBS_1.0: calls with the structures of before 2007. They are here so that the
 * library's symbols are those of upstream's; nothing that was built in this century's second decade
 * asks for them. They fail with ENOSYS.
 */
#include <errno.h>

#include "verbs_private.h"

#define COMPAT(name) __asm__(".symver vrb_compat_" #name ", " #name "@IBVERBS_1.0")

#define COMPAT_POINTER(name) \
	VRB_PUBLIC void *vrb_compat_##name(void); \
	void *vrb_compat_##name(void) \
	{ \
		errno = ENOSYS; \
		return NULL; \
	} \
	COMPAT(name)

#define COMPAT_ERRNO(name) \
	VRB_PUBLIC int vrb_compat_##name(void); \
	int vrb_compat_##name(void) \
	{ \
		return ENOSYS; \
	} \
	COMPAT(name)

#define COMPAT_MINUS1(name) \
	VRB_PUBLIC int vrb_compat_##name(void); \
	int vrb_compat_##name(void) \
	{ \
		errno = ENOSYS; \
		return -1; \
	} \
	COMPAT(name)

#define COMPAT_VOID(name) \
	VRB_PUBLIC void vrb_compat_##name(void); \
	void vrb_compat_##name(void) \
	{ \
	} \
	COMPAT(name)

#define COMPAT_GUID(name) \
	VRB_PUBLIC uint64_t vrb_compat_##name(void); \
	uint64_t vrb_compat_##name(void) \
	{ \
		errno = ENOSYS; \
		return 0; \
	} \
	COMPAT(name)

COMPAT_POINTER(ibv_get_device_list);
COMPAT_VOID(ibv_free_device_list);
COMPAT_POINTER(ibv_get_device_name);
COMPAT_GUID(ibv_get_device_guid);
COMPAT_POINTER(ibv_open_device);
COMPAT_ERRNO(ibv_close_device);
COMPAT_MINUS1(ibv_get_async_event);
COMPAT_VOID(ibv_ack_async_event);
COMPAT_ERRNO(ibv_query_device);
COMPAT_ERRNO(ibv_query_port);
COMPAT_MINUS1(ibv_query_gid);
COMPAT_MINUS1(ibv_query_pkey);
COMPAT_POINTER(ibv_alloc_pd);
COMPAT_ERRNO(ibv_dealloc_pd);
COMPAT_POINTER(ibv_reg_mr);
COMPAT_ERRNO(ibv_dereg_mr);
COMPAT_POINTER(ibv_create_cq);
COMPAT_ERRNO(ibv_resize_cq);
COMPAT_ERRNO(ibv_destroy_cq);
COMPAT_MINUS1(ibv_get_cq_event);
COMPAT_VOID(ibv_ack_cq_events);
COMPAT_POINTER(ibv_create_srq);
COMPAT_ERRNO(ibv_modify_srq);
COMPAT_ERRNO(ibv_query_srq);
COMPAT_ERRNO(ibv_destroy_srq);
COMPAT_POINTER(ibv_create_qp);
COMPAT_ERRNO(ibv_query_qp);
COMPAT_ERRNO(ibv_modify_qp);
COMPAT_ERRNO(ibv_destroy_qp);
COMPAT_POINTER(ibv_create_ah);
COMPAT_ERRNO(ibv_destroy_ah);
COMPAT_ERRNO(ibv_attach_mcast);
COMPAT_ERRNO(ibv_detach_mcast);

/* Drivers of 2006 announced themselves so. Only our own device is listed; theirs is not taken up.
 */
VRB_PUBLIC void vrb_compat_register_driver(const char *name, void *init);

void
vrb_compat_register_driver(const char *name, void *init)
{
}
__asm__(".symver vrb_compat_register_driver, ibv_register_driver@IBVERBS_1.1");
