/** Tasks and results of the crypto pool: plain data, imported by both ends. */

/** argon2id parameters. */
export type PasswordCost = {
  readonly memoryKib: number;
  readonly iterations: number;
  readonly parallelism: number;
};

/** Claims of every access token of this gateway, whoever holds it (docs/spec.md, Tokens and scopes). */
export type TokenFrame = { readonly issuer: string; readonly audience: string };

export type CryptoTask =
  | { readonly type: 'hash-password'; readonly password: string; readonly cost: PasswordCost }
  | { readonly type: 'verify-password'; readonly hash: string; readonly password: string; readonly cost: PasswordCost }
  | { readonly type: 'sign-token'; readonly kid: string; readonly privateKeyPem: string; readonly claims: object }
  | {
      readonly type: 'verify-token';
      readonly token: string;
      readonly publicKeyPem: string;
      readonly frame: TokenFrame;
    };

export type CryptoReplies = {
  'hash-password': string;
  'verify-password': { readonly matches: boolean; readonly rehash: boolean };
  'sign-token': string;
  /**
   * The claims of a token with a good signature, type, issuer and audience; undefined for any other. Times are not
   * checked here.
   */
  'verify-token': object | undefined;
};

export type CryptoTaskType = CryptoTask['type'];
export type CryptoTaskOf<T extends CryptoTaskType> = Extract<CryptoTask, { readonly type: T }>;

/** Tasks travel in batches; each has its own outcome, so that one bad task does not fail its neighbours. */
export type CryptoOutcome =
  | { readonly ok: true; readonly value: CryptoReplies[CryptoTaskType] }
  | { readonly ok: false; readonly cause: string };
