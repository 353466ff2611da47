/** A check whose caller is not identified (docs/spec.md, Checks 1). */
import { claimOf, effectsOfImpersonation, type Identified, type Speaker } from '../agents/identify.ts';
import { REFUSAL } from '../agents/refusal.ts';
import { lineageOfOrg } from '../audit/audit.ts';
import { assertNever } from '../base/result.ts';
import type { CheckCommand } from '../commands.ts';
import type { Outcome } from '../outcome.ts';
import { denied } from './answer.ts';
import { type CheckEntries, payloadOfStranger } from './entry.ts';

/** No identity, no operation: the registry is not touched. */
export function refuseCheck(
  command: CheckCommand,
  refused: Exclude<Identified, Speaker>,
  entries: CheckEntries,
): Outcome<'check'> {
  const { agent: claimed, action, opId } = command;
  const isStranger = refused.kind === 'no-credential' || refused.kind === 'unknown-credential';
  const payload = isStranger ? payloadOfStranger(command) : entries.payloadOf(command);
  const reason = REFUSAL[refused.kind];
  const reply = denied('credential', reason, undefined);
  switch (refused.kind) {
    case 'no-credential':
    case 'unknown-credential':
      return {
        reply,
        effects: [
          {
            kind: 'audit',
            draft: {
              eventType: 'ActionDenied',
              lineage: claimed,
              actor: 'anonymous',
              opId,
              decision: 'deny',
              reason,
              cause: 'credential',
              payload,
            },
          },
        ],
      };
    case 'org-out-of-reach': {
      // Recorded under the org of the credential's owner, not the claimed one: see effectsOfImpersonation.
      const { orgId, actor } = refused;
      return {
        reply,
        effects: [
          {
            kind: 'audit',
            draft: {
              eventType: 'A2AImpersonationAttempted',
              lineage: lineageOfOrg(orgId),
              actor,
              opId,
              decision: 'deny',
              reason,
              cause: 'credential',
              payload: Object.assign(payload, claimOf(claimed)),
            },
          },
        ],
      };
    }
    case 'impersonation':
      return { reply, effects: effectsOfImpersonation({ owner: refused.owner, claimed, action, opId, payload }) };
    default:
      return assertNever(refused);
  }
}
