/**
 * The values of the proto3 JSON mapping, read strictly: what has the wrong type is named by its path. As the mapping
 * says, null is the same as absent, and a number may come as a string.
 */
import { isMapping, type Mapping } from '../../core/base/mapping.ts';
import { cutText } from '../../core/base/text.ts';
import { MAX_BATCH_ITEMS } from '../shared/limits.ts';
import type { AgentId, JsonObject } from './messages.ts';
import { Malformed, tooMany } from './schema.ts';
import {
  type Allowance,
  allowanceFor,
  enter,
  MAX_SHOWN_KEY,
  type StructLimits,
  takeItem,
  takeKey,
  takeNumber,
} from './struct.ts';

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WHOLE = /^(?:0|[1-9]\d*)$/;
const NOT_FINITE: Readonly<Record<string, number>> = { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity };

/** `path` is where the value lies, with a dot at its end; empty for the body itself. */
export function jsonObject(value: unknown, path: string): Mapping {
  if (isMapping(value)) return value;
  throw new Malformed(path === '' ? 'body' : path.slice(0, -1), 'must be an object');
}

export function jsonList(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Malformed(path, 'must be a list');
}

export const unknownField = (path: string, key: string, message: string): Malformed =>
  new Malformed(path + cutText(key, MAX_SHOWN_KEY), `is not a field of ${message}`);

export function readStringJson(value: unknown, path: string, name: string): string {
  if (typeof value === 'string') return value;
  if (value === null) return '';
  throw new Malformed(path + name, 'must be a string');
}

export function readBoolJson(value: unknown, path: string, name: string): boolean {
  if (typeof value === 'boolean') return value;
  if (value === null) return false;
  throw new Malformed(path + name, 'must be true or false');
}

export function readDoubleJson(value: unknown, path: string, name: string): number {
  if (typeof value === 'number') return value;
  if (value === null) return 0;
  if (typeof value === 'string') {
    const special = Object.hasOwn(NOT_FINITE, value) ? NOT_FINITE[value] : undefined;
    if (special !== undefined) return special;
    if (NUMBER.test(value)) return Number(value);
  }
  throw new Malformed(path + name, 'must be a number');
}

/** A list of strings of a message that is not a batch; how many are too many is for the reader of the message. */
export function readStringsJson(value: unknown, path: string): readonly string[] {
  const items = jsonList(value, path);
  if (items.length > MAX_BATCH_ITEMS) throw tooMany(path);
  return items.map((item, index) => {
    if (typeof item !== 'string') throw new Malformed(`${path}[${index}]`, 'must be a string');
    return item;
  });
}

/** `limit` is the greatest value allowed: 2^32 - 1, or 2^53 - 1 for a uint64. */
export function readWholeJson(value: unknown, path: string, name: string, limit: number): number {
  const number = typeof value === 'string' && WHOLE.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= limit) return number;
  throw new Malformed(path + name, `must be a whole number from 0 to ${limit}`);
}

export function readAgentIdJson(value: unknown, path: string): AgentId {
  const source = jsonObject(value, `${path}.`);
  let orgId: string | undefined;
  let teamId: string | undefined;
  let agentId: string | undefined;
  for (const key in source) {
    const item = source[key];
    switch (key) {
      case 'orgId':
      case 'org_id':
        orgId = once(orgId, item, path, 'org_id');
        break;
      case 'teamId':
      case 'team_id':
        teamId = once(teamId, item, path, 'team_id');
        break;
      case 'agentId':
      case 'agent_id':
        agentId = once(agentId, item, path, 'agent_id');
        break;
      default:
        throw unknownField(`${path}.`, key, 'AgentId');
    }
  }
  return { orgId: orgId ?? '', teamId: teamId ?? '', agentId: agentId ?? '' };
}

function once(known: string | undefined, value: unknown, path: string, name: string): string {
  if (known !== undefined) throw new Malformed(`${path}.${name}`, 'is given under both of its names');
  return readStringJson(value, `${path}.`, name);
}

/** Attributes are JSON already; they only have to keep within their limits. */
export function readStructJson(value: unknown, path: string, limits?: StructLimits): JsonObject {
  const struct = jsonObject(value, `${path}.`);
  measure(struct, allowanceFor(path, limits), 1);
  return struct;
}

function measure(value: unknown, allowance: Allowance, depth: number): void {
  if (typeof value === 'number') {
    takeNumber(allowance, value);
  } else if (Array.isArray(value)) {
    enter(allowance, depth);
    for (const item of value) {
      takeItem(allowance);
      measure(item, allowance, depth + 1);
    }
  } else if (typeof value === 'object' && value !== null) {
    enter(allowance, depth);
    for (const key in value) {
      takeKey(allowance, key);
      measure((value as Mapping)[key], allowance, depth + 1);
    }
  }
}
