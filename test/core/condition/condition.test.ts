import { describe, expect, test } from 'vitest';
import {
  type CheckSubject,
  type ConditionOutcome,
  ConditionVariables,
  compileCondition,
} from '../../../src/core/condition/condition.ts';

const SUBJECT: CheckSubject = {
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes: {
    size: 10,
    half: 0.5,
    path: '/a/b',
    tags: ['x', 'y'],
    nested: { deep: true },
    nothing: null,
    groups: [['a'], ['b', 'c']],
  },
  caller: { orgId: 'acme', teamId: 'ops', agentId: 'boss' },
  estimatedCostMicroUsd: 250_000,
};

function evaluate(source: string, over: Partial<CheckSubject> = {}): ConditionOutcome {
  const compiled = compileCondition(source);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value.evaluate(new ConditionVariables().fill({ ...SUBJECT, ...over }));
}

describe('policy condition', () => {
  test.each([
    'agent.org_id == "acme" && agent.team_id == "search" && agent.agent_id == "a1"',
    'action == "tool.call" && resource.startsWith("web_")',
    'estimated_cost_usd == 0.25 && estimated_cost_usd < 1',
    'caller != null && caller.agent_id == "boss"',
    // A number of JSON is compared and computed with as an author writes numbers.
    'attributes.size < 1000',
    'attributes.size == 10 && attributes.size == 10.0',
    'attributes.size in [10, 20]',
    'attributes.size * 2 + 1 == 21',
    'attributes.size - 1 == 9 && attributes.size / 4 == 2.5 && attributes.size % 3 == 1',
    '1 + attributes.size == 11 && 1 - attributes.size == -9 && 3 * attributes.size == 30 && 5 / attributes.size == 0.5 && 13 % attributes.size == 3',
    'estimated_cost_usd * 4 == 1 && 1 == estimated_cost_usd * 4 && estimated_cost_usd != 1 && 1 != estimated_cost_usd',
    'attributes.size % attributes.half == 0 && attributes.size - attributes.half == 9.5',
    'attributes.half < 1',
    'estimated_cost_usd in [0.25, 1] && attributes.half in [1, 0.5] && attributes.half in [0.5, 1, -2] && [1, -2.5][1] == -2.5',
    'estimated_cost_usd < (agent.team_id == "search" ? 5 : 0.5) && (attributes.size > 100 ? 1.5 : 2) == 2',
    'estimated_cost_usd < {"search": 5, "ops": 1.5}[agent.team_id]',
    // Fields that may be missing.
    'has(attributes.size) && !has(attributes.absent)',
    '"size" in attributes && !("absent" in attributes)',
    'attributes.nothing == null',
    'attributes.nested.deep',
    'attributes["size"] == 10',
    // Texts and lists.
    'attributes.path.endsWith("/b") && attributes.path.contains("a") && attributes.path.size() == 4',
    'attributes.path.matches("^/[a-z]/b$")',
    'attributes.path.split("/")[1] == "a"',
    '"x" in attributes.tags',
    'attributes.tags.all(tag, tag.size() == 1)',
    'attributes.tags.exists(tag, tag in ["y", "z"])',
    'attributes.tags.exists_one(tag, tag == "x")',
    'attributes.tags.filter(tag, tag != "x").size() == 1',
    'timestamp("2026-03-01T12:30:00Z").getHours("Europe/Berlin") == 13',
    'duration("1h30m") < duration("2h")',
    'string(attributes.path.matches("^/[a-z]/b$")) == "true"',
    'attributes.groups.all(group, group.exists(member, member.matches("[a-c]")))',
    'attributes.tags.map(tag, tag + tag) == ["xx", "yy"] && attributes.tags.map(tag, tag != "x", tag.size()) == [1]',
    'attributes.tags.all(nth, tag, nth < 2 && tag.size() == 1) && attributes.nested.exists(key, value, value)',
    'attributes.groups.map(group, group.size()) == [1, 2] && attributes.groups.transformList(n, g, n) == [0, 1]',
    'attributes.nested == {"deep": true} && resource in ["a", 5, "web_search"] && attributes != {"deep": true, "n": 1}',
    '1 in [attributes.size, 1] && size(resource) in [1.0, 10]',
    'attributes.?size.orValue(0) == 10 && attributes.?absent.orValue(7) == 7 && !attributes.?nested.?no.hasValue()',
    'attributes.tags[?7].orValue("none") == "none" && attributes.?size.optMap(n, n * 2).value() == 20',
    'attributes.`nested`.deep && attributes.path.replace("/", ".") == ".a.b" && attributes.path.charAt(1) == "a"',
    'duration(attributes.?wait.orValue("90s")) > duration("1m") && attributes.tags.join(attributes.path) == "x/a/by"',
    '(duration("120s") + timestamp("2009-02-13T23:01:00Z")).getHours() == 23',
    'string(timestamp("2026-01-01T00:00:00.25Z")) == "2026-01-01T00:00:00.25Z" && string(duration("90m")) == "5400s"',
    // Irrelevant operands do not fail.
    'true || attributes.absent == 1',
    'attributes.absent == 1 || true',
  ])('%s holds', (source) => {
    expect(evaluate(source)).toBe(true);
  });

  test.each([
    ['attributes.absent < 3', 'No such key: absent'],
    ['attributes.path < 3', 'no such overload: dyn<string> < int'],
    ['attributes.size.matches("1")', 'no such overload: double.matches(string)'],
    ['attributes.tags[7] == "x"', 'No such key: index out of bounds, index 7 >= size 2'],
    ['attributes.size', 'it evaluates to a value of type number, not to true or false'],
    ['attributes.nothing', 'it evaluates to null, not to true or false'],
    ['attributes.constructor == 1', 'No such key: constructor'],
    ['1 / (2 - 2) == 1', 'division by zero'],
  ])('%s fails rather than being false', (source, error) => {
    expect(evaluate(source)).toEqual({ error });
  });

  test.each([
    'attributes.constructor == "Ferrari" && attributes.points == 12',
    'has(attributes.constructor) && "points" in attributes && attributes.size() == 4',
    'attributes.exists(key, key == "constructor") && attributes.all(key, key.size() > 0)',
    'attributes.car.constructor.name == "SF" && attributes.car.wins < 3',
    'attributes.car == attributes.car && attributes.car != attributes.laps[0]',
    'attributes.laps.exists(lap, lap.constructor == null && lap.seconds > 80)',
    'attributes.laps[0].seconds + 1 == 82',
  ])('an attribute named constructor is an ordinary attribute: %s holds', (source) => {
    const attributes = {
      constructor: 'Ferrari',
      points: 12,
      car: { constructor: { name: 'SF' }, wins: 2 },
      laps: [{ constructor: null, seconds: 81 }],
    };
    expect(evaluate(source, { attributes })).toBe(true);
    expect(evaluate('attributes.absent == 1', { attributes })).toEqual({ error: 'No such key: absent' });
  });

  test('a check is decided by its own data, never by that of the one before', () => {
    const variables = new ConditionVariables();
    const ask = (source: string, over: Partial<CheckSubject>): ConditionOutcome => {
      const compiled = compileCondition(source);
      if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
      return compiled.value.evaluate(variables.fill({ ...SUBJECT, ...over }));
    };
    const tidy = (constructor: string) =>
      ask('attributes.car.constructor == "Ferrari" && attributes.constructor == "Ferrari"', {
        attributes: { constructor, car: { constructor } },
      });
    expect([tidy('Ferrari'), tidy('Lotus'), tidy('Ferrari')]).toEqual([true, false, true]);
    expect([ask('attributes.size == 10', {}), ask('has(attributes.size)', { attributes: undefined })]).toEqual([
      true,
      false,
    ]);
    expect([ask('caller.agent_id == "boss"', {}), ask('caller == null', { caller: undefined })]).toEqual([true, true]);
    expect(
      ask('agent.team_id == "ads" && action == "llm.call" && resource == "gpt" && estimated_cost_usd == 1', {
        agent: { orgId: 'acme', teamId: 'ads', agentId: 'b' },
        action: 'llm.call',
        resource: 'gpt',
        estimatedCostMicroUsd: 1_000_000,
      }),
    ).toBe(true);
  });

  test('a failing condition leaves every other error its stack trace', () => {
    expect(evaluate('attributes.absent == 1')).toEqual({ error: 'No such key: absent' });
    expect(new Error('a defect').stack).toContain('condition.test.ts');
  });

  test('without attributes and caller, attributes is empty and caller null', () => {
    expect(evaluate('attributes.size() == 0 && caller == null', { attributes: undefined, caller: undefined })).toBe(
      true,
    );
    expect(evaluate('caller.org_id == "acme"', { caller: undefined })).toMatchObject({ error: expect.any(String) });
  });

  test.each([
    ['estimated_cost_usd in [1, 2]', 0, 'no such overload: double in list<int>; write its numbers as 1.0 instead of 1'],
    [
      'size(resource) in [1.0, 2.0]',
      0,
      'no such overload: int in list<double>; wrap the value to look for in double(…)',
    ],
    ['size(action).matches("c")', 0, 'no such overload: int.matches(string)'],
    ['agnet.org_id == "acme"', 0, 'Unknown variable: agnet'],
    ['agent.org == "acme"', 6, 'agent has no org; it has org_id, team_id, agent_id'],
    ['caller != null && caller.orgid == "x"', 18, 'caller has no orgid; it has org_id, team_id, agent_id'],
    ['action + 1 == "a"', 0, 'no such overload: string + int'],
    ['resource', 0, 'must evaluate to true or false, not to string'],
    ['attributes.size &&', 18, 'Unexpected token: EOF'],
    ['action == "a" and resource == "b"', 14, 'and is written && in conditions'],
    ['action == "a" OR resource == "b"', 14, 'OR is written || in conditions'],
    ['resource = "a"', 9, '= is written == in conditions'],
    ['action == "a" & resource == "b"', 14, '& is written && in conditions'],
    ['action == "a" | resource == "b"', 14, '| is written || in conditions'],
    ['resource contains "a"', 9, 'contains is written .contains(…) in conditions'],
    ['resource startsWith "a"', 9, 'startsWith is written .startsWith(…) in conditions'],
    ['resource endsWith "a"', 9, 'endsWith is written .endsWith(…) in conditions'],
    ['resource matches "a"', 9, 'matches is written .matches(…) in conditions'],
    ['not action == "a"', 0, 'not is written ! in conditions'],
    ['action == "a" resource == "b"', 14, 'an operator such as && is missing before this'],
    ['action == "a" ; true', 14, 'Unexpected character: ;'],
    ['resource.startWith("a")', 0, 'conditions have no function startWith(); did you mean startsWith()?'],
    ['attributes.tags.map(t)', 0, 'map() requires a name, a value; or a name, a condition, a value'],
    ['attributes.tags.all(t.x, true)', 20, 'all() requires a name here, such as x'],
    ['attributes.tags.all(t, 1)', 23, 'all() requires a condition here that is true or false, not int'],
    ['resource.all(t, true)', 0, 'all() requires a list or a map, not string'],
    ['has(resource)', 0, 'has() requires a field, such as has(attributes.size)'],
    ['resource.size > 3', 9, 'a value of type string has no fields'],
    ['resorce == "a"', 0, 'Unknown variable: resorce; did you mean resource?'],
    ['true ? 1 : "a"', 0, 'no such overload: bool ? int : string'],
    ['Message{a: 1} == 1', 0, 'conditions cannot make protobuf messages'],
    ['9223372036854775808 > 1', 0, 'this number is too large for an int of 64 bits'],
    ['"abc', 0, 'this string does not end; add "'],
    ['resource == "a\\d"', 14, 'Invalid escape sequence: \\d; a backslash is written \\\\'],
    ['not(action == "a")', 0, 'not is written ! in conditions'],
    ['(action == "a" and true)', 15, 'and is written && in conditions'],
    [`${'('.repeat(60)}true${')'.repeat(60)}`, 48, 'this is nested more than 48 deep'],
    ['cel.bind(a, attributes.tags, a == a)', 0, 'conditions have no function bind()'],
    ['resource.matchesLinear("a")', 0, 'conditions have no function matchesLinear()'],
    [
      'resource.matches(attributes.pattern)',
      17,
      'matches() requires a pattern in quotes, so that it is checked when the policy is loaded',
    ],
    ['resource.matches("[a-z")', 17, 'not a valid RE2 pattern: error parsing regexp: missing closing ]: `[a-z`'],
    [
      'resource.matches("(a)\\\\1")',
      17,
      'not a valid RE2 pattern: error parsing regexp: invalid escape sequence: `\\1`',
    ],
    ['resource.matches()', 0, "found no matching overload for 'string.matches()'"],
    ['resource.matches(5)', 17, 'matches() requires a pattern in quotes'],
    // Nothing is hidden from the search by standing in the brackets of something else.
    ['resource.startsWith(string(caller.orgid))', 27, 'caller has no orgid; it has org_id, team_id, agent_id'],
  ])('%s is refused when it is loaded', (source, offset, problem) => {
    expect(compileCondition(source)).toEqual({ ok: false, fault: [{ offset, problem }] });
  });

  const TOO_MANY =
    'the conditions of all rules for this check take more than 1000000 steps together: one for each operator, each value' +
    ' that a loop comes to and each 8 characters of text, and more for matches(); send less data, or have fewer rules' +
    ' with loops or matches() apply to its action and resource';

  // Each reads something large once more for every pair of elements.
  test.each([
    'size(attributes.c) > 0',
    'attributes.c.size() > 0',
    'resource.contains(x)',
    'x.contains(attributes.c)',
    'attributes.c == attributes.d',
    'attributes.c < attributes.d',
    '(attributes.c + "x") == x',
    '!(x in attributes.c)',
    'x in attributes.c.d',
    'x in attributes["c"]',
    'x in attributes.c[y]',
    'size([attributes.c]) > 0',
    'size({"k": attributes.c}) > 0',
    'size({string(attributes.c): 1}) > 0',
    'string(attributes.c) == x',
    'size(-attributes.c) > 0',
    'x.contains(attributes.c.trim())',
    'attributes.c.filter(z, z == x).size() > 0',
    'resource.lowerAscii() == x',
    'x == (y ? size(attributes.c) : 1)',
    'dyn(attributes.c) == dyn(attributes.d)',
    '{"k": attributes.c, "j": 1} == {"k": attributes.d, "j": 1}',
    '[1, attributes.c] == [1, attributes.d]',
  ])('%s within two loops cannot block the gateway', (body) => {
    const numbers = Array.from({ length: 500 }, (_, index) => index);
    const attributes = { a: numbers, b: numbers, c: 'x'.repeat(200_000), d: numbers };
    const source = `attributes.a.all(x, attributes.b.all(y, (${body}) || true))`;
    expect(evaluate(source, { attributes })).toEqual({ error: TOO_MANY });
    expect(evaluate(source, { attributes: { a: [], b: [], c: '', d: [] } })).toBe(true);
  });

  test.each([
    'attributes.a.all(x, x.all(y, y.all(z, z == 1)))',
    'attributes.a.all(x, x.b.all(y, y.c.all(z, z == 1)))',
    'attributes.a.all(x, x["b"].all(y, y["c"].all(z, z == 1)))',
    'attributes.a.all(x, timestamp(x).getHours() < 8)',
    'attributes.a.all(x, attributes.b.all(y, x == y))',
    'attributes.a.all(x, attributes.b.all(y, resource == "r"))',
    'attributes.a.all(x, attributes.b.all(y, resource.startsWith("r")))',
    'attributes.a.all(x, attributes.b.all(y, agent.org_id.contains("r") && size(x) == size(y)))',
  ])('%s is accepted', (source) => {
    expect(compileCondition(source).ok).toBe(true);
  });

  test('loops over empty literals work', () => {
    expect(evaluate('[].exists(e, e == 2)')).toBe(false);
    expect(evaluate('[].all(e, e == 2) && !{}.exists(k, k == "a")')).toBe(true);
  });

  test('a pattern may have at most 512 characters', () => {
    const matching = (length: number) => compileCondition(`resource.matches("${'a'.repeat(length)}")`);
    expect(matching(512).ok).toBe(true);
    expect(matching(513)).toEqual({
      ok: false,
      fault: [{ offset: 17, problem: 'a pattern may have at most 512 characters' }],
    });
  });

  test('an expression longer than 4096 characters is refused', () => {
    const compiled = compileCondition(`resource == "${'x'.repeat(4096)}"`);
    expect(compiled).toEqual({
      ok: false,
      fault: [{ offset: 0, problem: 'is 4110 characters long; the maximum is 4096' }],
    });
    expect(compileCondition(`resource == "${'x'.repeat(4082)}"`).ok).toBe(true);
  });

  // The largest body that an agent may send, against the conditions that do the most with it.

  const numbers = Array.from({ length: 150_000 }, (_, index) => index);
  test.each([
    ['attributes.list.all(item, item.nope == 1)', { list: numbers }],
    ['attributes.list.all(item, item in attributes.list)', { list: numbers }],
    [
      'attributes.list.exists(item, attributes.text.contains(item))',
      { list: Array.from({ length: 1000 }, () => 'ab'), text: 'a'.repeat(500_000) },
    ],
    ['attributes.text.split("").all(letter, letter == "a")', { text: 'a'.repeat(1_000_000) }],
    ['(resource + attributes.text).split("").all(letter, letter != "#")', { text: 'a'.repeat(1_000_000) }],
    ['attributes.text.matches("(a*)*(a*)*(a*)*b")', { text: 'a'.repeat(1_000_000) }],
    ['attributes.text.matches("(a*)*(a*)*(a*)*b")', { text: 'a'.repeat(8_000) }],
    [
      'attributes.list.exists(text, text.matches("(a*)*(a*)*(a*)*b"))',
      { list: Array.from({ length: 120 }, () => 'a'.repeat(8000)) },
    ],
    ['[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(n, attributes.list.all(item, item.nope == 1))', { list: numbers }],
  ])('%s cannot block the gateway, whatever is sent', (source, attributes) => {
    expect(evaluate(source, { attributes })).not.toBe(true);
  });

  test('a loop that fails in each round is no slower in a long condition', () => {
    const long = `${Array.from({ length: 180 }, (_, nth) => `resource != "a${nth}"`).join(' && ')} && attributes.list.all(item, item.nope == 1)`;
    const attributes = { list: Array.from({ length: 9_000 }, () => 1) };
    expect(evaluate(long, { attributes })).toEqual({ error: 'No such key: nope' });
  });

  test.each([
    ['resource.split("/").all(part, resource.split("/").filter(other, other == part).size() > 0)', '/'.repeat(2_048)],
    ['resource.split("").all(one, resource.split("").all(other, other == one))', 'x'.repeat(2_048)],
    [
      'resource.split(resource.substring(0, 1)).all(one, resource.split("/").all(other, other == one))',
      '/'.repeat(2_048),
    ],
    ['[resource].all(whole, whole.split("").all(one, whole.split("").all(other, other == one)))', 'x'.repeat(2_048)],
    ['attributes.list.all(item, resource.matches("(.{1,20}){1,20}[0-9]$") == false)', 'x'.repeat(2_048)],
    [
      'resource.split("/").all(part, resource.split("/").all(other, other.matches("(.{1,20}){1,20}[0-9]$") == false))',
      'xxxxxxxxx/'.repeat(200),
    ],
    ['resource.split("").all(one, one in attributes.list || one == "x")', 'x'.repeat(2_048)],
    [
      'resource.split("/").all(part, attributes.list.all(item, part.matches("(.{1,20}){1,20}[0-9]$") == false))',
      'xxxxxxxxx/'.repeat(200),
    ],
    [
      'attributes.list.all(item, resource.split("/").all(part, part.matches("(.{1,20}){1,20}[0-9]$") == false))',
      'xxxxxxxxx/'.repeat(200),
    ],
    [
      'resource.split("/").all(part, part.split("").all(one, part.matches("(.{1,20}){1,20}[0-9]$") == false))',
      'x'.repeat(2_048),
    ],
    [
      'resource.split("/").all(part, part.split("").all(one, part.lowerAscii().matches("(.{1,20}){1,20}[0-9]$") == false))',
      'x'.repeat(2_048),
    ],
    ['[resource].all(whole, attributes.list.all(item, whole.split("").all(one, one != item)))', 'x'.repeat(2_048)],
  ])('%s cannot block the gateway, whatever the resource', (source, resource) => {
    const attributes = { list: Array.from({ length: 200 }, (_, index) => index) };
    const outcomes = [true, false, { error: TOO_MANY }];
    expect(outcomes).toContainEqual(evaluate(source, { resource, attributes }));
  });

  test('a long resource may be split and looped over, beside lists, within the limit', () => {
    const resource = `files/${'a-rather-long-name-of-a-folder/'.repeat(40)}report.pdf`;
    const attributes = { blocked: ['.git', '.ssh', 'secrets'] };
    expect(
      evaluate('resource.split("/").all(part, resource.split("/").exists(other, other == part))', {
        resource,
        attributes: {},
      }),
    ).toBe(true);
    expect(evaluate('!attributes.blocked.exists(name, name in resource.split("/"))', { resource, attributes })).toBe(
      true,
    );
    expect(
      evaluate(
        'resource.split("/")[0] == "files" && attributes.blocked.all(name, attributes.blocked.exists(other, other == name))',
        {
          resource: '/'.repeat(2_048).replace('/', 'files/'),
          attributes: { blocked: Array.from({ length: 100 }, () => '.git') },
        },
      ),
    ).toBe(true);
    expect(evaluate('resource.split("/").all(part, part.matches("^[a-z.-]+$"))', { resource, attributes })).toBe(true);
    expect(evaluate('attributes.blocked.all(name, !resource.contains(name))', { resource, attributes })).toBe(true);
    expect(
      evaluate(
        'resource.matches("^files/") && attributes.blocked.all(name, attributes.blocked.exists(other, other == name))',
        { resource, attributes },
      ),
    ).toBe(true);
  });

  test.each([
    ['a path of 300 segments', Array.from({ length: 300 }, (_, nth) => `s${nth}`).join('/')],
    [
      'a URL of 2,000 characters',
      `https://example.com/search?${Array.from({ length: 200 }, (_, nth) => `q${100 + nth}=value`).join('&')}`.slice(
        0,
        2_000,
      ),
    ],
  ])('%s may be looped over, beside a few attributes', (_, resource) => {
    const attributes = {
      allowed: ['s7', 'q107=value'],
      recipients: ['ada@example.com', 'grace@example.com', 'joan@example.com'],
    };
    expect(
      evaluate(
        'resource.split("/").exists(part, part in attributes.allowed) || resource.split("&").exists(part, part in attributes.allowed)',
        { resource, attributes },
      ),
    ).toBe(true);
    expect(
      evaluate('attributes.allowed.exists(name, name in resource.split("/") || name in resource.split("&"))', {
        resource,
        attributes,
      }),
    ).toBe(true);
    expect(
      evaluate('resource.split("/").all(part, !attributes.recipients.exists(name, name == part))', {
        resource,
        attributes,
      }),
    ).toBe(true);
    expect(
      evaluate('attributes.recipients.all(name, name.endsWith("@example.com") && !resource.matches("^ftp:"))', {
        resource,
        attributes,
      }),
    ).toBe(true);
    expect(
      evaluate(
        'attributes.recipients.all(name, name.matches("@example[.]com$")) && !resource.split("/").exists(part, part in attributes.recipients)',
        { resource, attributes },
      ),
    ).toBe(true);
  });

  test('matches() accepts texts of at most 8192 characters', () => {
    expect(evaluate('attributes.text.matches("a")', { attributes: { text: 'a'.repeat(8193) } })).toEqual({
      error: 'matches() accepts strings of at most 8192 characters; this one has 8193',
    });
    expect(evaluate('attributes.text.matches("a")', { attributes: { text: 'a'.repeat(8192) } })).toBe(true);
  });

  test('without a loop no size is too large', () => {
    expect(
      evaluate('attributes.list.size() == 150000 && attributes.list[149999] == 149999 && 77 in attributes.list', {
        attributes: { list: numbers },
      }),
    ).toBe(true);
  });

  test('a long text does not keep a list beside it from being looped over', () => {
    const attributes = { list: [1, 2, 3], text: 'a'.repeat(100_000) };
    expect(evaluate('attributes.list.all(item, item > 0)', { attributes })).toBe(true);
    expect(evaluate('resource.matches("^web") && attributes.list.all(item, item > 0)', { attributes })).toBe(true);
  });

  /** Every way to nest lists and mappings `depth` deep. */
  function shapes(depth: number): readonly unknown[] {
    return depth === 0 ? [1] : shapes(depth - 1).flatMap((inner) => [[inner], { a: inner }]);
  }

  test('nested attributes leave no types behind: two levels are distinguished', () => {
    const errors = new Set(
      shapes(10).map((size) => JSON.stringify(evaluate('attributes.size < 10', { attributes: { size } }))),
    );
    expect([...errors].sort()).toEqual([
      '{"error":"no such overload: dyn<list<list<list<dyn>>>> < int"}',
      '{"error":"no such overload: dyn<list<list<map<dyn, dyn>>>> < int"}',
      '{"error":"no such overload: dyn<list<map<string, list<dyn>>>> < int"}',
      '{"error":"no such overload: dyn<list<map<string, map<dyn, dyn>>>> < int"}',
      '{"error":"no such overload: dyn<map<string, list<list<dyn>>>> < int"}',
      '{"error":"no such overload: dyn<map<string, list<map<dyn, dyn>>>> < int"}',
      '{"error":"no such overload: dyn<map<string, map<string, list<dyn>>>> < int"}',
      '{"error":"no such overload: dyn<map<string, map<string, map<dyn, dyn>>>> < int"}',
    ]);
  });

  test('values nested deeper than their types still compare by content', () => {
    const attributes = { a: [[[['x']]]], b: [[[['x']]]], c: [[[['y']]]] };
    expect(evaluate('attributes.a == attributes.b', { attributes })).toBe(true);
    expect(evaluate('attributes.a == attributes.c', { attributes })).toBe(false);
    expect(evaluate('attributes.a == [[[["x"]]]]', { attributes })).toBe(true);
    expect(evaluate('attributes.a[0][0][0][0] == "x"', { attributes })).toBe(true);
  });
});
