// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// An NVML with one GPU, for tests. What is wrong with it is chosen when it is
// compiled: UNMAP and FREE take the texts of errors away at the shutdown, LOST is a
// GPU of which hardly anything but the UUID is left, DENIED refuses the same, BRIDGED
// has 12 NVLinks where the interface has room for more, and NO_ERROR_STRING and
// NO_SHUTDOWN leave out a function that every NVML has.
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 4096 };

// text has the texts of errors, 64 bytes each.
static char *text;

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
	(void)flags;
#ifdef UNMAP
	text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#else
	text = calloc(1, SIZE);
#endif
	for (int i = 0; i < SIZE / 64; i++)
		snprintf(text + 64 * i, 64, "error number %d", i);
	strcpy(text + 64 * NVML_ERROR_NOT_SUPPORTED, "Not Supported");
	strcpy(text + 64 * NVML_ERROR_NO_PERMISSION, "Insufficient Permissions");
	strcpy(text + 64 * NVML_ERROR_GPU_IS_LOST, "GPU is lost");
	return NVML_SUCCESS;
}

#ifndef NO_SHUTDOWN
nvmlReturn_t nvmlShutdown(void) {
#if defined(UNMAP)
	munmap(text, SIZE);
#elif defined(FREE)
	memset(text, '#', SIZE);
	free(text);
#endif
	return NVML_SUCCESS;
}
#endif

#ifndef NO_ERROR_STRING
const char *nvmlErrorString(nvmlReturn_t result) {
	return text + 64 * (result < SIZE / 64 ? result : 0);
}
#endif

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
	snprintf(version, length, "570.86.15");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
	*version = 12080;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
	*count = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	device->handle = (struct nvmlDevice_st *)(size_t)(index + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
	(void)device;
	snprintf(uuid, length, "GPU-11111111-2222-3333-4444-555555555555");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
	(void)device;
	snprintf(name, length, "NVIDIA Test");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
	(void)device;
	*minor = 0;
	return NVML_SUCCESS;
}

#if defined(LOST)
#define ANSWER NVML_ERROR_GPU_IS_LOST
#elif defined(DENIED)
#define ANSWER NVML_ERROR_NO_PERMISSION
#else
#define ANSWER NVML_SUCCESS
#endif

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	(void)device;
	memory->total = 80ULL << 30;
	return ANSWER;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	(void)device;
	snprintf(pci->busId, sizeof(pci->busId), "00000000:3B:00.0");
	return ANSWER;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
	(void)device;
	*current = *pending = NVML_FEATURE_ENABLED;
	return ANSWER;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *errors) {
	(void)device, (void)type, (void)counter, (void)errors;
	return NVML_ERROR_NOT_SUPPORTED;
}

#ifdef BRIDGED
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
	(void)device;
	for (int i = 0; i < count; i++) {
		values[i].nvmlReturn = values[i].fieldId == NVML_FI_DEV_NVLINK_LINK_COUNT ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
		values[i].value.uiVal = 12;
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active) {
	(void)device;
	*active = link < 12 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return link < 18 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
	(void)device;
	snprintf(pci->busId, sizeof(pci->busId), link == 0 ? "00000000:5E:00.0" : "FFFFFFFF:FF:FF.0");
	return NVML_SUCCESS;
}
#endif
