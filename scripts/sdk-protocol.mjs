// Writes the messages and services of proto/ into the SDK, as the reflection that protobufjs reads: so the package has
// no file to find when it starts, and can be bundled. Run it after a change of proto/: npm run proto
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

const PROTO = fileURLToPath(new URL('../proto/', import.meta.url));
const FILES = ['policy_service.proto', 'agent_service.proto', 'approval_service.proto'].map(
  (file) => `svc/governance/v1/${file}`,
);

const root = new protobuf.Root();
// Google's own files come with the library.
root.resolvePath = (_from, file) => (file.startsWith('google/') ? null : PROTO + file);
root.loadSync(FILES);

writeFileSync(
  new URL('../sdk/typescript/src/protocol.ts', import.meta.url),
  `/** Generated from proto/ by \`npm run proto\`: do not edit. */\nexport const PROTOCOL = ${JSON.stringify(root.toJSON())};\n`,
);
