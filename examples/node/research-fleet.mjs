// A research fleet of two orgs: gatherers and writers of `lab`, and a guest of `uni` with whom nothing is shared.
//
//   SVC_POLICY_PATH=examples/policies/research-fleet.yaml npm start        # in one terminal
//   SVC_API_KEY=svc_... node examples/node/research-fleet.mjs              # in another, with the key it has shown
import { ActionDeniedError, createAgentClient, GatewayError } from 'svc-gateway-sdk';

const SOURCES = ['https://arxiv.org/abs/1', 'https://arxiv.org/abs/2', 'https://intranet.internal/3'];

const gatherer = createAgentClient({ agent: 'lab/gather/g1' });
const writer = createAgentClient({ agent: 'lab/write/w1' });
const guest = createAgentClient({ agent: 'uni/visit/guest' });

/** Fetches one source, as an operation of its own; undefined if policy denies it. */
async function gather(url) {
  try {
    return await gatherer.run({ action: 'net.connect', resource: url }, () => url);
  } catch (error) {
    if (!(error instanceof ActionDeniedError)) throw error;
    console.log(`DENIED ${url}: ${error.reason}`);
    return undefined;
  }
}

async function study(search) {
  const sources = (await Promise.all(SOURCES.map(gather))).filter((url) => url !== undefined);
  const note = { action: 'file.write', resource: '/notes/study.md', attributes: { sources } };
  await gatherer.run(note, () => console.log(`noted ${sources.length} sources`));
  // An operation belongs to its org: for others it does not exist.
  await guest.complete(search.opId).catch((error) => {
    if (!(error instanceof GatewayError)) throw error;
    console.log(`uni cannot touch it: ${error.code}`);
  });
}

try {
  const search = { action: 'tool.call', resource: 'web_search', attributes: { max_results: 10 }, traceId: 'study' };
  await gatherer.run(search, study);
  const report = { action: 'file.write', resource: '/reports/study.md' };
  await writer.run(report, () => console.log('wrote the report'));
  for (const [client, what] of [
    [writer, 'writers stay offline'],
    [guest, 'no rule for guests'],
  ]) {
    const { decision, cause } = await client.check({ action: 'net.connect', resource: SOURCES[0] });
    console.log(`${what}: ${decision}, ${cause}`);
  }
} finally {
  await Promise.all([gatherer, writer, guest].map((client) => client.close()));
}
