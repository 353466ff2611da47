/** Answers if a change could not be recorded. */
import { describe, expect, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import type { CommandType, Replies } from '../../../src/core/commands.ts';
import { unrecordedCommand, unrecordedReply } from '../../../src/threads/main/unrecorded.ts';

const DENIED = {
  ok: true,
  value: {
    decision: 'deny',
    reason: expect.stringContaining('audit log'),
    policy: undefined,
    ruleId: undefined,
    cause: 'unrecorded',
    exceeded: undefined,
    opState: undefined,
  },
};
const FAILED = { ok: false, fault: { kind: 'audit_unavailable' } };

describe('unrecorded', () => {
  test('a check is denied, and any other command fails', () => {
    expect(unrecordedCommand('check')).toEqual(DENIED);
    for (const type of [
      'register-op',
      'control-op',
      'complete-op',
      'register-agent',
      'deregister-agent',
      'record-usage',
    ] satisfies CommandType[])
      expect(unrecordedCommand(type), type).toEqual(FAILED);
  });

  test.each<[string, Replies[CommandType], object]>([
    [
      'a check that was allowed',
      {
        ok: true,
        value: {
          decision: 'allow',
          reason: 'r',
          policy: 'p',
          ruleId: '1',
          cause: 'unrecorded',
          exceeded: undefined,
          opState: 'running',
        },
      },
      DENIED,
    ],
    [
      'a check that was denied',
      {
        ok: true,
        value: {
          decision: 'deny',
          reason: 'r',
          policy: 'p',
          ruleId: '1',
          cause: 'unrecorded',
          exceeded: undefined,
          opState: 'terminated',
        },
      },
      DENIED,
    ],
    ['what succeeded without a word', { ok: true, value: undefined }, FAILED],
    ['usage that was counted', { ok: true, value: { status: 'ok' } }, FAILED],
    ['a refusal', fail({ kind: 'not_found', what: 'such operation' }), FAILED],
  ])('the answer to %s says that nothing was recorded', (_what, reply, expected) => {
    expect(unrecordedReply(reply)).toEqual(expected);
  });
});
