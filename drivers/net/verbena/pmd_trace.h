/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trace points (EAL's --trace): what changes while a port runs. None is on the way of frames.
 */
#ifndef PMD_TRACE_H
#define PMD_TRACE_H

#include <rte_trace_point.h>

RTE_TRACE_POINT(pmd_trace_start,
		RTE_TRACE_POINT_ARGS(uint16_t port_id, uint16_t rxq, uint16_t pollers, int rc),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u16(rxq); rte_trace_point_emit_u16(pollers);
		rte_trace_point_emit_int(rc);)

RTE_TRACE_POINT(
	pmd_trace_stop, RTE_TRACE_POINT_ARGS(uint16_t port_id), rte_trace_point_emit_u16(port_id);)

RTE_TRACE_POINT(pmd_trace_mode, RTE_TRACE_POINT_ARGS(uint16_t port_id, uint8_t polled),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u8(polled);)

RTE_TRACE_POINT(pmd_trace_reta, RTE_TRACE_POINT_ARGS(uint16_t port_id, uint16_t size),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u16(size);)

RTE_TRACE_POINT(pmd_trace_resize,
		RTE_TRACE_POINT_ARGS(uint16_t port_id, uint16_t queue, uint32_t size, int rc),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u16(queue); rte_trace_point_emit_u32(size);
		rte_trace_point_emit_int(rc);)

RTE_TRACE_POINT(pmd_trace_thresh, RTE_TRACE_POINT_ARGS(uint16_t port_id, uint32_t events),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u32(events);)

RTE_TRACE_POINT(pmd_trace_flow, RTE_TRACE_POINT_ARGS(uint16_t port_id, uint32_t rules),
		rte_trace_point_emit_u16(port_id);
		rte_trace_point_emit_u32(rules);)

#endif
