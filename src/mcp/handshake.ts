/** The first request of a session: what the servers can do, as one. */
import { isMapping } from '../core/base/mapping.ts';
import { within } from '../system/clock.ts';
import { withoutTasks } from './capabilities.ts';
import type { Instructions } from './instructions.ts';
import { type Answer, errorOf, type Fields, type Request, RPC_CODE, resultOf } from './json-rpc.ts';
import type { Upstream } from './upstream.ts';

const TIMEOUT_MS = 60_000;

export type HandshakeOptions = {
  readonly isPrefixed: boolean;
  readonly instructions: Instructions;
  readonly log: (line: string) => void;
};

export async function initialized(
  request: Request,
  upstreams: readonly Upstream[],
  { isPrefixed, instructions, log }: HandshakeOptions,
): Promise<Answer> {
  const params: Fields = { ...request.params, capabilities: withoutTasks(request.params?.capabilities) };
  const answers = await Promise.all(upstreams.map((upstream) => initializedOne(upstream, params)));
  const able = answers.filter(({ answer }) => answer.result !== undefined);
  for (const { upstream, answer } of answers)
    if (answer.result === undefined) log(`${upstream.name} is left out: ${answer.error?.message ?? 'no answer'}`);
  const [first] = able;
  if (first === undefined) return answers[0]?.answer ?? errorOf(request.id, RPC_CODE.internal, 'there is no server');
  const described = await Promise.all(
    able.map(({ upstream, answer }) => instructions.described(upstream.name, answer.result as Fields)),
  );
  if (!isPrefixed) return resultOf(request.id, { capabilities: {}, ...described[0] });
  return resultOf(request.id, {
    // The oldest version is the one that all of them understand.
    protocolVersion: able
      .map(({ answer }) => answer.result?.protocolVersion)
      .filter((version) => typeof version === 'string')
      .sort()[0],
    capabilities: able.reduce<Fields>((all, { upstream }) => united(all, upstream.capabilities), {}),
    serverInfo: { name: 'svc-mcp-proxy', version: '1' },
    instructions: able
      .flatMap(({ upstream }, n) =>
        typeof described[n]?.instructions === 'string' ? [`${upstream.name}: ${described[n].instructions}`] : [],
      )
      .join('\n\n'),
  });
}

async function initializedOne(upstream: Upstream, params: Fields): Promise<{ upstream: Upstream; answer: Answer }> {
  const sent = upstream.request('initialize', params);
  const late = `the MCP server ${upstream.name} did not answer in time`;
  const answer = (await within(TIMEOUT_MS, sent.answer)) ?? errorOf(sent.id, RPC_CODE.internal, late);
  if (answer.result !== undefined) {
    upstream.capabilities = withoutTasks(answer.result.capabilities);
    if (typeof answer.result.protocolVersion === 'string') upstream.negotiated(answer.result.protocolVersion);
  }
  return { upstream, answer };
}

/** Members that are objects in both are united in turn. */
function united(one: Fields, other: Fields): Fields {
  const all: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const known = all[name];
    all[name] = isMapping(known) && isMapping(value) ? united(known, value) : known === true ? true : value;
  }
  return all;
}
