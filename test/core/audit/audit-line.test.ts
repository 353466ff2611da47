import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { AUDIT_EVENTS, type AuditDraft, NO_LINEAGE } from '../../../src/core/audit/audit.ts';
import { encodeDraft } from '../../../src/core/audit/audit-line.ts';
import type { OpId } from '../../../src/core/base/ids.ts';
import { DECISION_CAUSES } from '../../../src/core/check/cause.ts';
import { CODE_POINT } from '../../support/code-point.ts';

const NOON_MS = Date.UTC(2026, 2, 1, 12);

describe('audit line', () => {
  test('a check is encoded field by field, in the published order', () => {
    const draft: AuditDraft = {
      eventType: 'ActionAllowed',
      lineage: { orgId: 'acme', teamId: 'search', agentId: 'crawler-7' },
      actor: 'agent:acme/search/crawler-7',
      opId: '4bf92f:00f067' as OpId,
      decision: 'allow',
      reason: 'web tools only',
      policy: 'search-team',
      ruleId: 'web-only',
      payload: { action: 'tool.call', resource: 'web_search', attributes: { size: 12 } },
    };
    expect(encodeDraft(draft, NOON_MS)).toBe(
      ',"timestamp":"2026-03-01T12:00:00.000Z","event_type":"ActionAllowed"' +
        ',"lineage":{"org_id":"acme","team_id":"search","agent_id":"crawler-7"},"op_id":"4bf92f:00f067","decision":"allow"' +
        ',"reason":"web tools only","policy":"search-team","rule_id":"web-only","cause":null,"actor":"agent:acme/search/crawler-7"' +
        ',"payload":{"action":"tool.call","resource":"web_search","attributes":{"size":12}}',
    );
  });

  test('absent fields are null, and an absent payload is an empty object', () => {
    expect(encodeDraft({ eventType: 'PolicyReloaded', lineage: NO_LINEAGE, actor: 'gateway' }, NOON_MS + 1)).toBe(
      ',"timestamp":"2026-03-01T12:00:00.001Z","event_type":"PolicyReloaded"' +
        ',"lineage":{"org_id":null,"team_id":null,"agent_id":null},"op_id":null,"decision":null' +
        ',"reason":null,"policy":null,"rule_id":null,"cause":null,"actor":"gateway","payload":{}',
    );
  });

  test('no control character of an agent is left in a line', () => {
    const body = encodeDraft(
      {
        eventType: 'ActionDenied',
        lineage: NO_LINEAGE,
        actor: 'gateway',
        reason: 'a\u009b2J',
        payload: { attributes: { 'k\u009b': '\u001b[2J\u009b2J\u007f' } },
      },
      NOON_MS,
    );
    expect(body).toContain('"reason":"a\\u009b2J"');
    expect(body).toContain('{"k\\u009b":"\\u001b[2J\\u009b2J\\u007f"}');
    expect(/\p{Cc}/u.test(body)).toBe(false);
  });

  const text = fc.string({ unit: CODE_POINT });
  const textOrNull = fc.option(text);
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const drafts: fc.Arbitrary<AuditDraft> = fc.record({
    eventType: fc.constantFrom(...AUDIT_EVENTS),
    lineage: fc.record({ orgId: textOrNull, teamId: textOrNull, agentId: textOrNull }),
    actor: text,
    opId: maybe(text.map((id) => id as OpId)),
    decision: maybe(fc.constantFrom('allow', 'deny')),
    reason: maybe(text),
    policy: maybe(text),
    ruleId: maybe(text),
    cause: maybe(fc.constantFrom(...DECISION_CAUSES)),
    payload: maybe(fc.dictionary(text, fc.jsonValue())),
  });

  test('any drafts in a row become one line of JSON each, with nothing lost', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(drafts, fc.integer({ min: 0, max: 3 })), { maxLength: 5 }), (row) => {
        for (const [draft, ms] of row) {
          const body = encodeDraft(draft, ms);
          expect(body).not.toContain('\n');
          const expected = {
            timestamp: `1970-01-01T00:00:00.00${ms}Z`,
            event_type: draft.eventType,
            lineage: {
              org_id: draft.lineage.orgId === '' ? null : draft.lineage.orgId,
              team_id: draft.lineage.teamId,
              agent_id: draft.lineage.agentId,
            },
            op_id: draft.opId ?? null,
            decision: draft.decision ?? null,
            reason: draft.reason ?? null,
            policy: draft.policy ?? null,
            rule_id: draft.ruleId ?? null,
            cause: draft.cause ?? null,
            actor: draft.actor,
            payload: draft.payload ?? {},
          };
          // Written anew: some control characters are escaped that JSON.stringify leaves as they are.
          expect(JSON.stringify(JSON.parse(`{${body.slice(1)}}`))).toBe(JSON.stringify(expected));
        }
      }),
    );
  });

  test.each<[string, Partial<AuditDraft>, string]>([
    ['decision', { decision: 'deny' }, ',"decision":"deny","reason":"r","policy":"p","rule_id":"i","cause":null,'],
    ['reason', { reason: 'other' }, ',"decision":"allow","reason":"other","policy":"p","rule_id":"i","cause":null,'],
    ['policy', { policy: 'other' }, ',"decision":"allow","reason":"r","policy":"other","rule_id":"i","cause":null,'],
    ['cause', { cause: 'rule' }, ',"decision":"allow","reason":"r","policy":"p","rule_id":"i","cause":"rule",'],
    ['rule', { ruleId: 'other' }, ',"decision":"allow","reason":"r","policy":"p","rule_id":"other","cause":null,'],
  ])('an entry that differs from the one before it only in its %s carries its own', (_what, change, expected) => {
    const draft: AuditDraft = {
      eventType: 'ActionAllowed',
      lineage: NO_LINEAGE,
      actor: 'gateway',
      decision: 'allow',
      reason: 'r',
      policy: 'p',
      ruleId: 'i',
    };
    expect(encodeDraft(draft, NOON_MS)).toContain(
      ',"decision":"allow","reason":"r","policy":"p","rule_id":"i","cause":null,',
    );
    expect(encodeDraft({ ...draft, ...change }, NOON_MS)).toContain(expected);
  });

  test('the first entry of a process is whole when nothing was decided for it', async () => {
    vi.resetModules();
    const { encodeDraft: encodeFirst } = await import('../../../src/core/audit/audit-line.ts');
    expect(encodeFirst({ eventType: 'PolicyReloaded', lineage: NO_LINEAGE, actor: 'gateway' }, NOON_MS)).toContain(
      ',"op_id":null,"decision":null,"reason":null,"policy":null,"rule_id":null,"cause":null,"actor":"gateway"',
    );
  });

  test('values that JSON cannot express are left out of a payload', () => {
    expect(
      encodeDraft(
        {
          eventType: 'PolicyReloaded',
          lineage: NO_LINEAGE,
          actor: 'gateway',
          payload: { before: undefined, size: 12, after: undefined },
        },
        NOON_MS,
      ),
    ).toMatch(/,"payload":\{"size":12\}$/);
  });
});
