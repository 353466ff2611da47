import type { FaultKind } from '../core/fault.ts';
import { HTTP_STATUS } from './engine/reply.ts';
import { RPC_CODE } from './shared/rpc-code.ts';

/** Explains an error and how to fix it; both in Markdown. */
type Explanation = { readonly meaning: string; readonly remedy: string };

const EXPLANATIONS: Readonly<Record<FaultKind, Explanation>> = {
  invalid_argument: {
    meaning: 'a field is missing or malformed, or the JSON is; `field` names it',
    remedy: 'Correct the request. Do not retry it unchanged.',
  },
  unauthenticated: {
    meaning: 'the credential is missing, unknown, expired or revoked',
    remedy: 'Sign in again, or use a valid API key or agent token.',
  },
  insufficient_scope: {
    meaning: 'the credential lacks a scope; `needed_scope` names it',
    remedy: 'Use a credential with that scope.',
  },
  org_forbidden: {
    meaning: 'the credential is bound to an org, and the request concerns another or all of them',
    remedy: 'Leave out the filter, or use a credential of that org or of none.',
  },
  role_forbidden: {
    meaning: 'the caller may not grant or revoke this role, because it is above its own',
    remedy: 'Ask somebody with that role.',
  },
  not_owner: {
    meaning: 'the operation belongs to another agent of the org',
    remedy: 'Use the trace and span of your own operation.',
  },
  own_request: {
    meaning: 'the requester of an approval may not give it, nor may a key that the same person made',
    remedy: 'Have somebody else decide, with a credential of their own.',
  },
  not_approver: {
    meaning: 'the rule names who may decide, and the caller is not among them; `detail` has the list',
    remedy: 'Ask one of them.',
  },
  impersonation: {
    meaning: 'the token belongs to another agent; the attempt is in the audit log',
    remedy: 'Present the token of the agent that you name.',
  },
  halted: {
    meaning: 'a halt covers the agent; `detail` has its id and reason',
    remedy: 'Wait until an operator releases the halt.',
  },
  registration_closed: {
    meaning: 'there is an account already, and registration is not open',
    remedy: 'Ask an administrator for an invite.',
  },
  setup_required: {
    meaning:
      'there is no account yet, and the first one, which becomes the owner, needs proof that the operator makes it',
    remedy:
      'Open the setup link that the gateway printed when it started, or register with the admin API key as bearer.',
  },
  foreign_host: {
    meaning:
      'the gateway listens on loopback only, and the `Host` header is not its own: a page may have rebound its name',
    remedy: 'Call the gateway by its address. Operators: behind a proxy on the same machine, set `SVC_PUBLIC_URL`.',
  },
  foreign_origin: {
    meaning: 'a page of another origin sent the request',
    remedy: 'Add the origin to `SVC_CORS_ORIGINS`, or set `SVC_PUBLIC_URL` to the URL that people use.',
  },
  not_found: {
    meaning: 'there is no such thing or path, or none that the credential may see',
    remedy: 'Check the id. Ended operations are removed after a minute, and a restart of the gateway loses all.',
  },
  invalid_transition: {
    meaning: 'the operation is in a state that does not allow this; `from` and `trigger` name them',
    remedy: 'Read the operation again, and act on its state.',
  },
  email_taken: {
    meaning: 'an account has this e-mail address already',
    remedy: 'Sign in, or use another address.',
  },
  ambiguous: {
    meaning: 'several orgs have an operation of this id; `org_ids` names them',
    remedy: 'Say which with `?org_id=`.',
  },
  conflict: {
    meaning: 'the present state does not allow this, such as a token of another agent, or a limit on API keys',
    remedy: 'Follow `detail`.',
  },
  policy_invalid: {
    meaning: 'the policy files have mistakes, listed in `problems`; the previous set stays in force',
    remedy: 'Correct the files (`svc policy validate`) and reload.',
  },
  use_publish: {
    meaning: 'the gateway belongs to a cluster, whose policies are published to all gateways at once',
    remedy: 'Use `svc policy publish`, or `POST /api/v1/policies`.',
  },
  unknown_model: {
    meaning: 'the price of the reported model is unknown; nothing was counted',
    remedy: 'Report `cost_usd` instead. Operators: add the model to `SVC_PRICES_PATH`, or set `SVC_UNKNOWN_MODEL`.',
  },
  weak_password: {
    meaning: 'the password is too short or too common',
    remedy: 'Choose another, of at least 12 characters.',
  },
  invalid_invite: {
    meaning: 'the invite is unknown, expired or used',
    remedy: 'Ask for a new invite.',
  },
  invalid_reset_token: {
    meaning: 'the reset token is unknown, expired or used',
    remedy: 'Request another reset.',
  },
  account_locked: {
    meaning: 'too many failed attempts to sign in',
    remedy: 'Wait as long as `Retry-After` says, or ask an administrator to unlock the account.',
  },
  rate_limited: {
    meaning: 'the credential or the address has sent too many requests in this minute',
    remedy: 'Wait as long as `Retry-After` says. Operators: `SVC_RATE_LIMIT_API`, `SVC_RATE_LIMIT_AUTH`.',
  },
  account_store_unavailable: {
    meaning: 'this gateway has no account store',
    remedy: 'Use an API key. Operators: set `SVC_DATABASE_URL`.',
  },
  store_unreachable: {
    meaning: 'the database or the data directory cannot be reached or written at the moment',
    remedy: 'Retry after `Retry-After`. Operators: `/readyz` and the log name the cause.',
  },
  unreachable_gateway: {
    meaning: 'another gateway of the cluster, which has to decide this, does not answer; `detail` names it',
    remedy: 'Look whether it was done, and retry after `Retry-After`. Operators: `svc cluster ls`.',
  },
  audit_unavailable: {
    meaning: 'the audit log cannot be written, and nothing happens unrecorded',
    remedy: 'Retry later. Operators: free space or rights in the data directory; the log names the cause.',
  },
  shutting_down: {
    meaning: 'the gateway is shutting down',
    remedy: 'Reconnect and retry; a usage report only with a `usage_id`.',
  },
  overloaded: {
    meaning: 'a queue or table is full; `detail` names it',
    remedy: 'Retry after `Retry-After`, with fewer requests at once. Operators: raise the limit that is named.',
  },
  method_not_allowed: {
    meaning: 'the path exists, with other methods; `Allow` lists them',
    remedy: 'Use one of those methods.',
  },
  unsupported_media_type: {
    meaning: 'the body has another content type, or is compressed',
    remedy: 'Send it as `detail` says, uncompressed.',
  },
  upgrade_required: {
    meaning: 'the path is a WebSocket',
    remedy: 'Connect with a WebSocket client.',
  },
  payload_too_large: {
    meaning: 'the body or message is too large',
    remedy: 'Send less at once. Do not retry it unchanged.',
  },
  internal: {
    meaning: 'a mistake of the gateway',
    remedy: 'Report it, with the lines of the gateway log. Whether the request took effect is unknown.',
  },
};

/** The table of docs/errors.md, by HTTP status. */
export function errorTable(): string {
  const kinds = Object.keys(HTTP_STATUS) as FaultKind[];
  const rows = kinds
    .sort((one, other) => HTTP_STATUS[one] - HTTP_STATUS[other] || (one < other ? -1 : 1))
    .map((kind) => {
      const { meaning, remedy } = EXPLANATIONS[kind];
      return `| \`${kind}\` | ${HTTP_STATUS[kind]} | ${RPC_CODE[kind].toUpperCase()} | ${meaning} | ${remedy} |\n`;
    });
  return `| code | HTTP | gRPC | meaning | what to do |\n| --- | --- | --- | --- | --- |\n${rows.join('')}`;
}
