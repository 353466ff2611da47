/** Which HTTP engine serves: the native one where it loads, unless the setting says otherwise. */
import type { TlsIdentity } from '../../ports/tls.ts';
import type { Engine } from './engine.ts';
import { createNativeEngine } from './native.ts';
import { findNativeBuild, whyNone } from './native-builds.ts';
import { createNodeEngine } from './node.ts';

/** The values of SVC_HTTP_ENGINE. */
export type EngineChoice = 'auto' | 'native' | 'node';

export type ChosenEngine = {
  readonly engine: Engine;
  /** For the operator: what serves and, where that is the slower one against their will, what to do about it. */
  readonly description: string;
};

const WITH_TLS = 'node:https, because of SVC_TLS_CERT, at a fraction of the native speed';

/**
 * `onError` learns of connections that node:http cannot accept, for instance because the process is out of descriptors.
 * Throws where the native engine is demanded and does not load. With `tls`, node:https serves: one build of the native
 * library has no TLS, and none takes another certificate while it runs.
 */
export function chooseEngine(
  choice: EngineChoice,
  onError: (error: unknown) => void,
  find = findNativeBuild,
  tls?: TlsIdentity,
): ChosenEngine {
  if (tls !== undefined) return { engine: createNodeEngine(onError, tls), description: WITH_TLS };
  if (choice === 'node') return { engine: createNodeEngine(onError), description: 'node:http, by SVC_HTTP_ENGINE' };
  const found = find();
  if (found.kind === 'found')
    return { engine: createNativeEngine(found.library), description: `${found.label}, native` };
  const why = whyNone(found.missing);
  if (choice === 'native')
    throw new Error(`SVC_HTTP_ENGINE is native, which does not load here: ${why}, or set SVC_HTTP_ENGINE to auto`);
  return { engine: createNodeEngine(onError), description: `node:http, at a fraction of the native speed: ${why}` };
}
