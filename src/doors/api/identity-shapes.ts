/** Shapes of answers about API keys, tokens and accounts. */
import { z } from 'zod';
import { ROLES, SCOPES } from '../../core/identity/roles.ts';
import { pageOf, rfc3339 } from './shapes.ts';

const scopes = z.array(z.enum(SCOPES));
const unixSecs = z.int().meta({ description: 'Unix seconds' });

export const tokenShape = z.strictObject({ token: z.string(), expires_at: unixSecs, scopes });
const keyFields = {
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  scopes,
  org_id: z.string().nullable(),
  created_at: rfc3339,
  created_by: z.string(),
  expires_at: rfc3339.nullable(),
  revoked_at: rfc3339.nullable(),
  last_used_at: rfc3339.nullable(),
};
export const createdKeyShape = z.strictObject({ key: z.string().meta({ description: 'Shown once.' }), ...keyFields });
export const ownKey = z
  .strictObject(keyFields)
  .pick({ id: true, name: true, scopes: true, org_id: true, expires_at: true });
export const keyPage = pageOf('api_keys', z.strictObject(keyFields));
export const rotatedKey = z.strictObject({ kid: z.string() });
export const jwkSet = z.strictObject({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })) });

const newAccountFields = {
  id: z.string(),
  email: z.string(),
  role: z.enum(ROLES),
  org_id: z.string().nullable(),
  created_at: rfc3339,
};
const account = z.strictObject({
  ...newAccountFields,
  disabled: z.boolean(),
  last_login_at: rfc3339.nullable(),
  locked_until: rfc3339
    .nullable()
    .meta({ description: 'End of the lock after too many failed sign-ins; null: not locked' }),
});
export const createdAccount = z.strictObject({ account: z.strictObject(newAccountFields) });
export const shownAccount = z.strictObject({ account });
const namedKeys = z.array(z.strictObject({ id: z.string(), name: z.string() })).optional();
const namedHooks = z.array(z.strictObject({ id: z.string(), url: z.string() })).optional();
export const changedAccount = z.strictObject({
  account,
  revoked_keys: namedKeys.meta({ description: 'API keys that it had made, and that have ended with this.' }),
  kept_keys: namedKeys.meta({ description: 'API keys that it had made, and that were kept with `cascade=false`.' }),
  deleted_webhooks: namedHooks.meta({ description: 'Webhooks that it had made, and that have ended with this.' }),
  kept_webhooks: namedHooks.meta({ description: 'Webhooks that it had made, kept with `cascade=false`.' }),
});
export const ownAccount = z.strictObject({ account, scopes });
export const accountPage = pageOf('accounts', account);
export const signedIn = z.strictObject({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int(),
  expires_at: unixSecs,
  scopes,
});
export const issuedReset = z.strictObject({
  reset_token: z.string().meta({ description: 'Shown once; works once.' }),
  link: z.string().meta({ description: 'Where to open the dashboard with it.' }),
  email: z.string(),
  expires_at: rfc3339,
});
export const createdInvite = z.strictObject({
  invite_token: z.string().meta({ description: 'Shown once.' }),
  email: z.string(),
  role: z.enum(ROLES),
  org_id: z.string().nullable(),
  expires_at: rfc3339,
});
export const invitePage = pageOf(
  'invites',
  z.strictObject({
    ...newAccountFields,
    invited_by: z.string().meta({ description: '`key:<id>` or `account:<id>`' }),
    expires_at: rfc3339,
  }),
);
export const signInMethods = z.strictObject({
  methods: z.array(z.enum(['api_key', 'password'])),
  registration: z
    .enum(['first_account', 'open', 'closed'])
    .optional()
    .meta({ description: 'Who may register without an invite. Absent without an account store.' }),
  setup_required: z
    .literal(true)
    .optional()
    .meta({ description: 'Present while the first account needs a setup token or the admin key.' }),
  reset_by_mail: z
    .boolean()
    .optional()
    .meta({ description: 'Whether a forgotten password can be reset by mail. Absent without an account store.' }),
});
