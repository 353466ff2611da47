import type { AgentIdentity, AgentKey } from '../base/ids.ts';

export type AgentView = {
  readonly identity: AgentIdentity;
  readonly parent: AgentKey | undefined;
  readonly registeredAtMs: number;
  readonly lastSeenMs: number | undefined;
  readonly activeOps: number;
};
