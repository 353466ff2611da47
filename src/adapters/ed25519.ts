import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { messageOf } from '../core/error-text.ts';

/** PEM texts as Node writes them, whatever was read: the token library is given nothing else. */
export type VerifyingKey = { readonly kid: string; readonly publicKeyPem: string };
export type SigningKey = VerifyingKey & { readonly privateKeyPem: string };

const PEM_BLOCK = /-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g;

/** The `x` of a public key's JWK. */
export const coordinateOf = (publicKeyPem: string): string =>
  createPublicKey(publicKeyPem).export({ format: 'jwk' }).x ?? '';

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

export const generateSigningKey = (): SigningKey => signingKeyOf(generateKeyPairSync('ed25519').privateKey);

/**
 * Reads one or several PEM blocks: the first must be a private key, which signs; all others, private or public, only
 * verify. Throws with the reason, without a word of the text, when it holds anything else.
 */
export function readSigningKeys(pem: string): {
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
