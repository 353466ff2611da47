import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Credential, isNamed, type Lineage, personBehind } from '../../../src/core/approvals/approvers.ts';
import { CRAWLER, checkOf, decisionOf, openGovernor } from '../../support/governor.ts';

const credential = (subject: string, more: Partial<Credential> = {}): Credential => ({
  subject,
  names: [],
  isValid: true,
  isFirst: false,
  ...more,
});
const FIRST = credential('key:first', { names: ['key:first admin key'], isFirst: true });
const ALICE = credential('account:alice', { names: ['role:admin', 'account:Alice@acme.example'] });
const named = (name: string, more: Partial<Credential> = {}) =>
  credential(`key:id-of-${name}`, { names: [`key:${name}`], ...more });

describe('the person behind a credential', () => {
  test('is the account that made it, through however many keys', () => {
    expect(personBehind([ALICE])).toBe('account:alice');
    expect(personBehind([named('two'), named('one'), ALICE])).toBe('account:alice');
  });

  test('is the first key below the one that the gateway made', () => {
    expect(personBehind([FIRST])).toBe('key:first');
    expect(personBehind([named('ops'), FIRST])).toBe('key:id-of-ops');
    expect(personBehind([named('two'), named('one'), named('ops'), FIRST])).toBe('key:id-of-ops');
  });

  test('is the last known one if a maker was deleted', () => {
    expect(personBehind([named('ci'), credential('key:gone', { isValid: false })])).toBe('key:gone');
  });
});

describe('a rule that names approvers', () => {
  const boss = ['key:boss'];
  const cases: readonly [string, Lineage, readonly string[], boolean][] = [
    ['a name that the first key has given', [named('boss'), FIRST], boss, true],
    ['the name of the first key itself', [FIRST], ['key:First Admin Key'], true],
    ['a name that an admin has given who may not decide', [named('boss'), named('alice'), FIRST], boss, false],
    ['a name that an account has given who may not decide', [named('boss'), ALICE], boss, false],
    ['a name that an account has given who may', [named('boss'), ALICE], ['key:boss', 'role:admin'], true],
    ['a name that another named key has given', [named('boss'), named('Boss'), FIRST], boss, true],
    ['a name given by one that has ended', [named('boss'), named('boss', { isValid: false }), FIRST], boss, false],
    ['a name given by the first key before it was replaced', [named('boss'), { ...FIRST, isValid: false }], boss, true],
    ['a name of unknown origin', [named('boss')], boss, false],
    ['an id, whoever made the key', [named('any'), named('alice'), FIRST], ['key:id-of-any'], true],
    ['an id in other letters', [named('any'), FIRST], ['key:ID-of-any'], false],
    ['an account by its e-mail address', [ALICE], ['account:alice@acme.example'], true],
    ['an account by its id', [ALICE], ['account:alice'], true],
    ['a key by the role of its maker', [named('ci'), ALICE], ['role:admin'], false],
    ['an account that is disabled', [{ ...ALICE, isValid: false }], ['account:alice'], false],
  ];

  test.each(cases)('takes or refuses %s', (_, lineage, approvers, isTaken) => {
    expect(isNamed(lineage, approvers)).toBe(isTaken);
  });
});

describe('any tree of keys', () => {
  const ask = {
    decide: () =>
      ({
        kind: 'require_approval',
        reason: 'ask',
        policy: 'p',
        ruleId: 'ask',
        cause: undefined,
        approval: { min: 2, expiresMs: 60_000, validMs: undefined, approvers: [] },
      }) as const,
  };

  test('meets a minimum of two only by two people, neither of whom has asked', () => {
    // Each key is made by one before it, the first by the gateway; whoever it descends from below that is its person.
    const makers = fc.array(fc.nat(), { minLength: 2, maxLength: 8 });
    fc.assert(
      fc.property(makers, fc.array(fc.nat(), { maxLength: 6 }), fc.nat(), (tree, deciding, asking) => {
        const makerOf = tree.map((given, at) => (at === 0 ? undefined : given % at));
        const lineageOf = (at: number): Lineage => {
          const maker = makerOf[at];
          const own = credential(`key:${at}`, { isFirst: at === 0 });
          return maker === undefined ? [own] : [own, ...lineageOf(maker)];
        };
        const personOf = (at: number): number => {
          const maker = makerOf[at];
          return maker === undefined || maker === 0 ? at : personOf(maker);
        };
        const people = Object.fromEntries(tree.map((_, at) => [`key:${at}`, `key:${personOf(at)}`]));
        const governor = openGovernor({ policies: ask });
        const principalOf = (at: number) => ({ subject: `key:${at}`, scopes: ['admin'] as const, orgId: null });
        const asker = asking % tree.length;
        governor.apply({ ...checkOf(CRAWLER, 't:a'), credential: undefined, principal: principalOf(asker) }, 1_000);
        const [approval] = governor.approvals.all();
        for (const given of deciding) {
          const at = given % tree.length;
          const decision = decisionOf(governor, principalOf(at), approval!.id);
          governor.apply({ ...decision, lineage: lineageOf(at), people }, 2_000);
        }
        const approvers = new Set(
          deciding.map((given) => personOf(given % tree.length)).filter((person) => person !== personOf(asker)),
        );
        expect(governor.approvals.get(approval!.id)?.state).toBe(approvers.size >= 2 ? 'approved' : 'pending');
      }),
    );
  });

  test('is considered anew if somebody has asked meanwhile', () => {
    const governor = openGovernor({ policies: ask });
    governor.apply(checkOf(CRAWLER, 't:a'), 1_000);
    const [approval] = governor.approvals.all();
    const decision = decisionOf(governor, { subject: 'key:x', scopes: ['admin'], orgId: null }, approval!.id);
    expect(governor.apply({ ...decision, people: {} }, 2_000).reply).toMatchObject({ fault: { kind: 'conflict' } });
    expect(governor.approvals.get(approval!.id)?.decisions).toEqual([]);
  });
});
