/** Why a request speaks for nobody. */
export type RefusalKind = 'no-credential' | 'unknown-credential' | 'impersonation' | 'org-out-of-reach';

/** The message for a refused identity. It reveals nothing beyond what the caller sent. */
export const REFUSAL: Readonly<Record<RefusalKind, string>> = {
  'no-credential': 'no credential token presented; register the agent and send its token',
  'unknown-credential': 'the credential token is not registered; register the agent again to get a new one',
  impersonation: 'the credential token is registered to a different agent',
  'org-out-of-reach': 'the credential has no access to the org of the claimed agent',
};
