/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of the trace points (see pmd_trace.h).
 */
#include <rte_trace_point_register.h>

#include "pmd_trace.h"

RTE_TRACE_POINT_REGISTER(pmd_trace_start, pmd.net.verbena.start)
RTE_TRACE_POINT_REGISTER(pmd_trace_stop, pmd.net.verbena.stop)
RTE_TRACE_POINT_REGISTER(pmd_trace_mode, pmd.net.verbena.mode)
RTE_TRACE_POINT_REGISTER(pmd_trace_reta, pmd.net.verbena.reta)
RTE_TRACE_POINT_REGISTER(pmd_trace_resize, pmd.net.verbena.resize)
RTE_TRACE_POINT_REGISTER(pmd_trace_thresh, pmd.net.verbena.thresh)
RTE_TRACE_POINT_REGISTER(pmd_trace_flow, pmd.net.verbena.flow)
