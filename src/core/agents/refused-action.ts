/** Actions that are refused before they become a check: nothing is decided, but it is recorded who tried what. */

import { type AuditDraft, type Lineage, lineageOfOrg } from '../audit/audit.ts';
import { redactShort, redactText } from '../audit/redact-text.ts';
import { ok } from '../base/result.ts';
import type { RefuseCommand } from '../commands.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import type { AgentRegistry } from './agents.ts';
import { claimOf, effectsOfImpersonation, identify } from './identify.ts';
import { REFUSAL } from './refusal.ts';

/** In characters. A text that is refused for its length must not fill the log. */
const MAX_SHOWN = 256;
const shown = (text: string): string => redactShort(text, MAX_SHOWN);

/** Records one entry if there is an identity, none for unauthenticated callers. Changes nothing else. */
export function refuseAction(agents: AgentRegistry, command: RefuseCommand): Outcome<'refuse-action'> {
  const { agent, principal, reason } = command;
  const action = shown(command.action);
  const payload = { action, resource: shown(command.resource) };
  const denied = (eventType: AuditDraft['eventType'], lineage: Lineage, actor: string, why: string, more = {}) => ({
    reply: ok({ reason: why }),
    effects: [
      {
        kind: 'audit' as const,
        draft: {
          eventType,
          lineage,
          actor,
          decision: 'deny' as const,
          reason: redactText(why),
          payload: { ...payload, ...more },
        },
      },
    ],
  });
  if (agent === undefined)
    return principal === undefined
      ? unchanged(ok({ reason }))
      : denied('ActionDenied', lineageOfOrg(principal.orgId), principal.subject, reason);
  const identified = identify(agents, agent, command);
  switch (identified.kind) {
    case 'agent':
      return denied('ActionDenied', identified.entry.identity, identified.actor, reason);
    case 'impersonation': {
      const { owner } = identified;
      const effects = effectsOfImpersonation({ owner, claimed: agent, action, opId: undefined, payload });
      return { reply: ok({ reason: REFUSAL.impersonation }), effects };
    }
    case 'org-out-of-reach': {
      const { orgId, actor, kind } = identified;
      return denied('A2AImpersonationAttempted', lineageOfOrg(orgId), actor, REFUSAL[kind], claimOf(agent));
    }
    case 'no-credential':
    case 'unknown-credential':
      return unchanged(ok({ reason: REFUSAL[identified.kind] }));
  }
}
