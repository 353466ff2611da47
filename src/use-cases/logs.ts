/** Reading the audit log, within the caller's org (docs/spec.md, Audit). */

import type { AuditFilter } from '../core/audit/audit.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { orgInReach } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';

/** `page` is the JSON answer of a listing, `lines` its entries alone; the others are a piece of an export. */
export type LogFormat = 'page' | 'lines' | 'ndjson' | 'csv';

export type LogRequest = {
  readonly filter: AuditFilter;
  readonly format: LogFormat;
  readonly perPage: number;
  readonly cursor: string | undefined;
};

/** Text in UTF-8, ready to be sent: entries may be many, and the threads they pass through need not parse them. */
export type LogText = {
  readonly text: Uint8Array;
  readonly next: string | undefined;
  /** With the first piece of a cluster's export: the gateways whose entries are missing. */
  readonly incomplete?: readonly string[] | undefined;
};

/**
 * Reads entries, newest first, for somebody of the org. Faults: `invalid_argument` for a cursor, `overloaded`,
 * `internal`.
 */
export type AuditReads = { read(request: LogRequest, orgId: Principal['orgId']): Promise<Result<LogText, Fault>> };

/** Faults: `org_forbidden` for a filter on another org, and those of `AuditReads`. */
export async function readLog(
  reads: AuditReads,
  principal: Principal,
  request: LogRequest,
): Promise<Result<LogText, Fault>> {
  const org = orgInReach(principal, request.filter.orgId);
  return org.ok ? reads.read({ ...request, filter: { ...request.filter, orgId: org.value } }, principal.orgId) : org;
}
