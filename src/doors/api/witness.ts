/** Accepts other gateways' statements about their audit logs (docs/audit-log.md, Witnesses). */
import { z } from 'zod';
import { ok } from '../../core/base/result.ts';
import { msOfRfc3339 } from '../../core/base/time.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { ruled, withBody } from './body.ts';
import { witnessed } from './shapes.ts';

const ID_RULE = 'must be the id of an entry, a whole number from 1';
const entryId = z.int(ID_RULE).min(1, ID_RULE);
/** In characters; longer than any that a gateway writes. */
const MAX_TIME = 40;

const entryHash = ruled(
  (text) => /^[0-9a-f]{64}$/.test(text),
  'must be the hash of that entry: 64 lower-case hexadecimal digits',
);
const gatewayName = ruled(
  (text) => /^[A-Za-z0-9._-]{1,64}$/.test(text),
  'must be the name of a gateway: at most 64 letters, digits, dots, underscores and hyphens',
);
const MAX_PEERS = 1_000;

const statement = z.strictObject({
  id: entryId.meta({ description: 'The last entry of the log at `timestamp`.' }),
  hash: entryHash,
  // As it was signed.
  timestamp: ruled(
    (text) => text.length <= MAX_TIME && msOfRfc3339(text) !== undefined,
    'must be an RFC 3339 time such as 2026-01-31T12:00:00Z',
  ),
  signature: ruled(
    (text) => /^[A-Za-z0-9_-]{86}$/.test(text),
    'must be the signature of the checkpoint: 86 characters of base64url',
  ),
  first_id: optional(entryId.meta({ description: 'Where the log began then.' })),
  gateway: optional(gatewayName.meta({ description: 'In a cluster: the gateway of the log.' })),
  peers: optional(
    z
      .array(z.strictObject({ gateway: gatewayName, id: entryId, hash: entryHash }))
      .max(MAX_PEERS, `must be at most ${MAX_PEERS}`)
      .meta({ description: "In a cluster: the last entries of the others' logs." }),
  ),
});

async function keep({ principal, body }: Authorized<typeof statement>, link: Link): Promise<HttpReply> {
  const kept = await link.call('witnessCheckpoint', { principal, statement: body });
  if (!kept.ok) return kept;
  return ok({ status: kept.value.isNew ? 201 : 200, body: { id: body.id, hash: body.hash } });
}

export const witnessRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/audit/witness',
    access: { scope: 'write' },
    summary: 'Keeps a checkpoint of another audit log in this one; 200 if it was known',
    answers: { 200: witnessed, 201: witnessed },
    refusals: [409],
    ...withBody(statement, keep),
  },
];
