/** The HTTP engines, for tests that hold for each. If no native build loads, there is only one. */
import type { Engine, EngineName } from '../../src/doors/engine/engine.ts';
import { createNativeEngine } from '../../src/doors/engine/native.ts';
import { findNativeBuild } from '../../src/doors/engine/native-builds.ts';
import { createNodeEngine } from '../../src/doors/engine/node.ts';

const failed = (error: unknown): void => {
  throw error;
};
const found = findNativeBuild();

export type CreateEngine = () => Engine;
export const createNode: CreateEngine = () => createNodeEngine(failed);

export const ENGINES: readonly (readonly [EngineName, CreateEngine])[] = [
  ...(found.kind === 'none' ? [] : [['native', () => createNativeEngine(found.library)] as const]),
  ['node', createNode],
];
