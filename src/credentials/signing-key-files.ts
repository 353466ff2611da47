import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OneByOne } from '../core/base/one-by-one.ts';
import { assert, fail, ok } from '../core/base/result.ts';
import { messageOf } from '../core/base/text.ts';
import { CLOCK_SKEW_MS, KEY_TOKEN_SECS } from '../core/identity/token-claims.ts';
import { type Clock, StoreUnwritable } from '../ports/ports.ts';
import { ifThere, removeRemains, replaceFile } from '../system/files.ts';
import type { PublicJwk, SigningKeys } from './signing-keys.ts';

/** PEM texts as Node writes them, whatever was read: the token library is given nothing else. */
export type VerifyingKey = { readonly kid: string; readonly publicKeyPem: string };
export type SigningKey = VerifyingKey & { readonly privateKeyPem: string };

const PEM_BLOCK = /-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g;

/** The `x` of a public key's JWK. */
const coordinateOf = (publicKeyPem: string): string => createPublicKey(publicKeyPem).export({ format: 'jwk' }).x ?? '';

function verifyingKeyOf(key: KeyObject): VerifyingKey {
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`it must be an Ed25519 key, not ${key.asymmetricKeyType ?? 'a secret'}`);
  const publicKeyPem = key.export({ type: 'spki', format: 'pem' }).toString();
  // RFC 7638: the thumbprint names the key, so every gateway that is given a key gives it the same id.
  const thumbprint = createHash('sha256').update(
    JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: coordinateOf(publicKeyPem) }),
  );
  return { kid: thumbprint.digest('base64url'), publicKeyPem };
}

function signingKeyOf(key: KeyObject): SigningKey {
  return {
    ...verifyingKeyOf(createPublicKey(key)),
    privateKeyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const generateSigningKey = (): SigningKey => signingKeyOf(generateKeyPairSync('ed25519').privateKey);

/**
 * Reads one or several PEM blocks: the first must be a private key, which signs; all others, private or public, only
 * verify. Throws with the reason, without a word of the text, when it holds anything else.
 */
function readSigningKeys(pem: string): {
  readonly signing: SigningKey;
  readonly verifying: readonly VerifyingKey[];
} {
  const [first, ...others] = Array.from(pem.matchAll(PEM_BLOCK), ([block, label]) => ({
    block,
    isPrivate: label === 'PRIVATE KEY',
  }));
  if (first === undefined || !first.isPrivate)
    throw new Error('it must begin with an unencrypted PKCS #8 private key (BEGIN PRIVATE KEY)');
  try {
    return {
      signing: signingKeyOf(createPrivateKey(first.block)),
      verifying: others.map(({ block }) => verifyingKeyOf(createPublicKey(block))),
    };
  } catch (error) {
    throw new Error(`it cannot be read: ${messageOf(error)}`);
  }
}

export type SigningKeysOptions = {
  readonly dataDir: string;
  /** SVC_JWT_PRIVATE_KEY: PEM text, or the path of a file that holds it. Unset: a key is made at the first start. */
  readonly given: string | undefined;
  readonly clock: Clock;
};

type RetiredKey = VerifyingKey & { readonly untilMs: number };
type Ring = {
  readonly active: SigningKey;
  readonly verifying: readonly VerifyingKey[];
  readonly retired: readonly RetiredKey[];
};
/** The file: the private key is left out when the operator keeps it. */
type Stored = {
  readonly active: VerifyingKey & { readonly privateKeyPem?: string };
  readonly retired: readonly RetiredKey[];
};

/** How long a token that was signed a moment ago can be valid, at most. */
const RETIRED_FOR_MS = KEY_TOKEN_SECS * 1000 + CLOCK_SKEW_MS;
const GIVEN =
  'the signing key is set by SVC_JWT_PRIVATE_KEY; if that names a file, replace the key in it and send SIGHUP, otherwise restart with another key';

/**
 * Opens the key ring in `<dataDir>/keys/signing.json` (0600, folder 0700), of which no other process may be open.
 * Rejects with the reason when a key is unusable.
 */
export async function openSigningKeys(options: SigningKeysOptions): Promise<SigningKeys> {
  const folder = join(options.dataDir, 'keys');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const path = join(folder, 'signing.json');
  await removeRemains(path);
  const ring = new KeyRing(path, options);
  await ring.reload();
  return ring;
}

class KeyRing implements SigningKeys {
  readonly #path: string;
  readonly #options: SigningKeysOptions;
  #ring: Ring | undefined;
  #byKid = new Map<string, { readonly publicKeyPem: string; readonly untilMs: number }>();
  /** Changes run one at a time: each starts from what the one before has written. */
  readonly #changes = new OneByOne();

  constructor(path: string, options: SigningKeysOptions) {
    this.#path = path;
    this.#options = options;
  }

  signer(): SigningKey {
    return this.#inForce().active;
  }

  verifier(kid: string): string | undefined {
    const key = this.#byKid.get(kid);
    return key !== undefined && this.#options.clock.nowMs() < key.untilMs ? key.publicKeyPem : undefined;
  }

  jwks(): { readonly keys: readonly PublicJwk[] } {
    const nowMs = this.#options.clock.nowMs();
    const current = Array.from(this.#byKid).filter(([, { untilMs }]) => nowMs < untilMs);
    return { keys: current.map(([kid, { publicKeyPem }]) => jwkOf(kid, publicKeyPem)) };
  }

  rotate() {
    return this.#changes.run(async () => {
      if (this.#options.given !== undefined) {
        return fail({ kind: 'conflict', detail: GIVEN } as const);
      }
      const { active, retired } = this.#inForce();
      const next = generateSigningKey();
      await this.#replace({ active: next, verifying: [], retired: [...retired, this.#retire(active)] });
      return ok({ kid: next.kid });
    });
  }

  reload() {
    return this.#changes.run(async () => {
      const before = this.#ring?.active.kid;
      const stored = await this.#readStored();
      const given = this.#options.given === undefined ? undefined : await readGiven(this.#options.given);
      const active = given?.signing ?? storedSigner(stored) ?? generateSigningKey();
      // unless it is still the active one: see `#replace`
      const outdated = stored === undefined ? [] : [this.#retire(stored.active)];
      await this.#replace({
        active,
        verifying: given?.verifying ?? [],
        retired: [...(stored?.retired ?? []), ...outdated],
      });
      return { kid: active.kid, changed: before !== active.kid };
    });
  }

  #inForce(): Ring {
    assert(this.#ring !== undefined, 'the key ring is loaded when it is opened');
    return this.#ring;
  }

  #retire({ kid, publicKeyPem }: VerifyingKey): RetiredKey {
    return { kid, publicKeyPem, untilMs: this.#options.clock.nowMs() + RETIRED_FOR_MS };
  }

  /** Written to disk first: no token is signed by a key that a crash could make the gateway forget. */
  async #replace({ active, verifying, retired }: Ring): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    const still = retired.filter(({ kid, untilMs }) => kid !== active.kid && nowMs < untilMs);
    const { kid, publicKeyPem, privateKeyPem } = active;
    const kept = this.#options.given === undefined ? { kid, publicKeyPem, privateKeyPem } : { kid, publicKeyPem };
    await replaceFile(
      this.#path,
      `${JSON.stringify({ active: kept, retired: still } satisfies Stored, null, 2)}\n`,
    ).catch((error: unknown) => {
      throw new StoreUnwritable(error);
    });
    this.#ring = { active, verifying, retired: still };
    this.#byKid = new Map([
      ...still.map((key) => [key.kid, key] as const),
      ...[...verifying, active].map((key) => [key.kid, { publicKeyPem: key.publicKeyPem, untilMs: Infinity }] as const),
    ]);
  }

  async #readStored(): Promise<Stored | undefined> {
    const text = await ifThere(readFile(this.#path, 'utf8'));
    try {
      return text === undefined ? undefined : parseStored(text);
    } catch {
      // Making a new key instead would end every session without a word; the operator decides.
      throw new Error(`${this.#path} is damaged; restore it, or remove it to start with a new key`);
    }
  }
}

function parseStored(text: string): Stored {
  const { active, retired } = JSON.parse(text) as Stored;
  for (const { kid, publicKeyPem } of [active, ...retired]) {
    if (typeof kid !== 'string' || coordinateOf(publicKeyPem) === '') throw new Error('no such key');
  }
  storedSigner({ active, retired }); // as every start reads it
  return { active, retired };
}

/** Throws where the private key cannot be read. */
function storedSigner(stored: Stored | undefined): SigningKey | undefined {
  const privateKeyPem = stored?.active.privateKeyPem;
  return privateKeyPem === undefined ? undefined : readSigningKeys(privateKeyPem).signing;
}

async function readGiven(given: string) {
  try {
    return readSigningKeys(
      given.includes('-----BEGIN') ? given.replaceAll('\\n', '\n') : await readFile(given, 'utf8'),
    );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The system's message would quote what it took for a path, which may be a key in another format.
    const isNoFile = typeof code === 'string' && /^E[A-Z]+$/.test(code);
    throw new Error(
      `SVC_JWT_PRIVATE_KEY: ${isNoFile ? `is neither a key in PEM format nor a readable file (${code})` : message}`,
    );
  }
}

function jwkOf(kid: string, publicKeyPem: string): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x: coordinateOf(publicKeyPem), kid, use: 'sig', alg: 'EdDSA' };
}
