/** The routes of the HTTP API. A handler only translates; it decides nothing. */
import { z } from 'zod';
import { AUDIT_EVENTS } from '../../core/audit/audit.ts';
import type { AgentIdentity, SecretDigest } from '../../core/base/ids.ts';
import type { Result } from '../../core/base/result.ts';
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal, Scope } from '../../core/identity/roles.ts';
import { LIMIT_PERS } from '../../core/limits/limit.ts';
import { OP_ENDS } from '../../core/ops/op-state.ts';
import { MAX_GLOB_LENGTH } from '../../core/policy/glob.ts';
import { DEFAULT_WINDOW, STATS_WINDOWS } from '../../core/stats/windows.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Caller } from '../rpc/handle.ts';
import type { WirePorts } from '../rpc/ports.ts';
import type { Header, HttpStatus } from '../shared/http-answer.ts';
import type { Limit } from '../shared/over-limit.ts';
import { DEFAULT_PER_PAGE, MAX_PER_PAGE } from '../shared/page-limits.ts';

// The query parameters of the API. Each means the same in every route.

const time = z.iso.datetime({ offset: true });
const glob = z.string().min(1).max(MAX_GLOB_LENGTH);

export const QUERY = {
  org_id: z.string().meta({
    description:
      'Only this org. Default: the org that the credential is bound to, or every org if it is bound to none.',
  }),
  team_id: z.string().min(1).meta({ description: 'Limit to teams of this name.' }),
  agent_id: z.string().min(1).meta({ description: 'Limit to agents of this name.' }),
  state: z.string().meta({ description: 'Only operations, or approvals, in this state.' }),
  wait: z.int().min(0).max(60).meta({ description: 'Seconds to wait until it is decided.', default: 0 }),
  event_type: z
    .string()
    .meta({ description: `Only entries of these types, separated by commas: ${AUDIT_EVENTS.join(', ')}.` }),
  decision: z.enum(['allow', 'deny']).meta({ description: 'Only entries with this decision.' }),
  op_id: z.string().min(1).meta({ description: 'Only entries about this operation.' }),
  window: z.enum(STATS_WINDOWS).meta({
    description: 'The span of time that is counted: by minute up to a day, by hour beyond.',
    default: DEFAULT_WINDOW,
  }),
  op_home: z
    .string()
    .min(1)
    .meta({ description: 'Only at this gateway of a cluster, as `op_home` of an answer names it. Default: all.' }),
  actor: z.string().min(1).meta({ description: 'Only entries caused by this actor, such as `key:<id>`.' }),
  since: time.meta({ description: 'Only entries at or after this time.' }),
  until: time.meta({ description: 'Only entries before this time.' }),
  active: z.boolean().meta({ description: 'Only halts in force, or only released ones.' }),
  made_by: z
    .string()
    .min(1)
    .meta({ description: 'Only valid keys made by this subject, such as `key:<id>`, or by those keys.' }),
  cascade: z
    .boolean()
    .meta({ description: '`false` keeps the API keys that it made; otherwise they end with it.', default: true }),
  policy: z.string().min(1).meta({ description: 'Only this policy document, or its decisions.' }),
  per: z.enum(LIMIT_PERS).meta({ description: 'Only limits that count together what these use.' }),
  limit: z.string().min(1).meta({ description: 'Only the limit of this id.' }),
  rule_id: z.string().min(1).meta({ description: 'Only decisions of the rule with this id.' }),
  cause: z.enum(DECISION_CAUSES).meta({ description: 'Only denials for this cause.' }),
  from: z.string().min(1).meta({ description: 'The version of the older set.' }),
  to: z.string().min(1).meta({ description: 'The version of the newer set. Default: the one in force.' }),
  shadow: z.enum(['differs']).meta({ description: 'Only checks that the shadow of the policies decides otherwise.' }),
  action: glob.meta({ description: 'Only actions that match this pattern, as in rules: `tool.*`.' }),
  resource: glob.meta({ description: 'Only resources that match this pattern, as in rules.' }),
  model: z.string().min(1).meta({ description: 'The model, as its caller names it.' }),
  provider: z.string().min(1).meta({ description: 'Who serves the model, such as `anthropic`.' }),
  ended: z.enum(OP_ENDS).meta({ description: 'Only operations that ended so.' }),
  format: z.enum(['ndjson', 'csv']).meta({ description: 'Format of the export.', default: 'ndjson' }),
  per_page: z
    .int()
    .min(1)
    .max(MAX_PER_PAGE)
    .meta({ description: 'Maximum items per page.', default: DEFAULT_PER_PAGE }),
  cursor: z.string().meta({ description: '`next_cursor` of the previous page.' }),
  snapshot: z.boolean().meta({ description: 'Send the operations in flight first.', default: false }),
  lineage: z
    .boolean()
    .meta({ description: 'Add the subject of the operation to the payload of `ops_change`.', default: false }),
  types: z.string().meta({ description: 'Comma-separated event types. Default: all.' }),
  ticket: z.string().meta({ description: 'A ticket from POST /api/v1/auth/ws-ticket, instead of a bearer.' }),
} as const satisfies Record<string, z.ZodType>;

export type QueryName = keyof typeof QUERY;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** `Body` is the schema of its body. */
export type HttpRequest<Body extends z.ZodType = z.ZodUnknown> = {
  /** The `:names` of the path, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** The JSON body as the schema parsed it. Without a schema, the parsed JSON; undefined if there was no body. */
  readonly body: z.output<Body>;
  readonly remoteAddress: string;
  readonly bearer: string | undefined;
  /** Whether its client has gone, for answers that are held back. */
  readonly caller: Caller;
};

export type BodyResult = { readonly kind: 'whole'; bytes: Buffer } | { readonly kind: 'too-large' };

/** A request whose body the handler reads by itself. Its protocol has words of its own for what is refused. */
export type RawRequest = Omit<HttpRequest, 'body'> & {
  readonly body: BodyResult | { readonly kind: 'refused'; readonly refusal: Result<never, Fault> };
};

/** From an agent with a token of its own, as commands that agents give for themselves take it. */
export type FromAgent = HttpRequest & {
  readonly voucher: { readonly agent: AgentIdentity; readonly credential: SecretDigest; readonly principal: undefined };
};

export type Authorized<Body extends z.ZodType = z.ZodUnknown> = HttpRequest<Body> & { readonly principal: Principal };

export type HttpResponse = {
  readonly status: HttpStatus;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, with its own content type, instead of `body`. */
  readonly text?: { readonly type: string; readonly content: string | Uint8Array };
  /** Sent piece by piece, as fast as the client reads, instead of `body`. A fault in place of a piece cuts it off. */
  readonly stream?: { readonly type: string; readonly chunks: AsyncIterable<Result<Uint8Array, Fault>> };
  readonly headers?: readonly Header[];
};

export type HttpReply = Result<HttpResponse, Fault>;

/** The shape of a success: the schema of its JSON, another media type, or no content. */
export type AnswerShape = z.ZodType | { readonly mediaTypes: readonly string[] } | 'empty';

/**
 * How many requests of a row may be in progress at once in an I/O thread, at most half of them from one address; `what`
 * names it in the refusal.
 */
export type ConcurrencyLimit = { readonly limit: number; readonly what: string };

type Common = {
  readonly method: Method;
  readonly path: `/${string}`;
  readonly limit?: Limit;
  /** Beyond it an I/O thread refuses requests of this row by itself, before they cost anything. */
  readonly atOnce?: ConcurrencyLimit;
  /**
   * Its answers may take the main thread long, so they are requested one at a time, from a queue that is fair between
   * orgs, with checks in between.
   */
  readonly isQueued?: true;
  /** Takes any parameters, as probes and pages do. */
  readonly isQueryIgnored?: true;
  /**
   * Marks a read-only route that is refused under a name that is not the gateway's, as all routes that change something
   * are.
   */
  readonly isForOwnHosts?: true;
  // From here on: what OpenAPI says about the row.
  /** A single line. */
  readonly summary: string;
  /** The JSON body it takes. */
  readonly body?: z.ZodType;
  readonly query?: readonly QueryName[];
  /** The successful answers by status. */
  readonly answers?: Readonly<Record<number, AnswerShape>>;
  /** The shape of its errors, if they follow another protocol instead of being problem documents. */
  readonly failure?: z.ZodType;
  /** Headers of its successful answers. */
  readonly headers?: readonly ('Set-Cookie' | 'Content-Disposition' | 'svc-incomplete')[];
  /** Statuses of problems that only this row has, besides those that follow from its input and its access. */
  readonly refusals?: readonly HttpStatus[];
  /** The credentials that a public row reads by itself; any one of them will do. */
  readonly credentials?: readonly ('bearer' | 'refresh_cookie' | 'none')[];
};

/**
 * `access`: with `public` no credential is looked at; a scope takes a bearer that holds it. An `agent` speaks another
 * protocol: its row finds out who it is, reads the body, and says in the words of that protocol what is wrong.
 */
export type Route =
  | (Common & {
      readonly access: 'public';
      /** Ignores the body, even one that is not JSON. */
      readonly isBodyIgnored?: true;
      readonly handle: (request: HttpRequest, link: Link) => Promise<HttpReply>;
    })
  | (Common & {
      readonly access: { readonly scope: Scope };
      readonly handle: (request: Authorized, link: Link) => Promise<HttpReply>;
      /** Agents may use the row as well, for what is their own. It takes no body. */
      readonly handleOwn?: (request: FromAgent, link: Link) => Promise<HttpReply>;
    })
  | (Common & {
      readonly access: 'agent';
      readonly handle: (request: RawRequest, ports: WirePorts) => Promise<HttpReply>;
    });
