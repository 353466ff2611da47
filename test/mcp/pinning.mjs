/**
 * A process that pins: `pinning.mjs <file of pins> [paused] [without-links]`. Each line of its input names a server, and
 * it answers `done`. When `paused`, it says so and waits for a line before it first takes a lock away.
 */
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { createInterface } from 'node:readline';

const [path, ...ways] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

if (ways.includes('without-links'))
  files.link = async () => {
    throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
  };
if (ways.includes('paused')) {
  let isFirst = true;
  for (const name of ['rename', 'rm']) {
    const real = files[name];
    files[name] = async (from, ...rest) => {
      if (from === `${path}.lock` && isFirst) {
        isFirst = false;
        console.log('paused');
        await lines.next();
      }
      return real(from, ...rest);
    };
  }
}
syncBuiltinESMExports();

const { PinStore } = await import('../../dist/src/mcp/pin-store.js');
const store = new PinStore(path);
console.log('ready');
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  await store.compare(line.value, [{ name: 'add', description: 'adds', inputSchema: { type: 'object' } }]);
  console.log('done');
}
