/** The checks that a request of the Model Context Protocol needs, in the words of policies. */
import { isMapping } from '../base/mapping.ts';
import { fail, ok, type Result } from '../base/result.ts';
import { problemOfUri } from '../base/text.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A request that is checked: the name that it uses, which kind of name that is, and its arguments. */
export type Asked = {
  readonly kind: 'tool' | 'resource' | 'prompt';
  readonly name: string;
  readonly args: Fields;
};

/** In policies. The resource is `<server>/<tool>`, `<server>/<uri>` or `<server>/<prompt>`. */
export const MCP_ACTION = { tool: 'mcp.call', resource: 'mcp.read', prompt: 'mcp.prompt' } as const;

export type Malformed = { readonly field: string; readonly problem: string };
type Reader = (params: Fields) => Result<Asked, Malformed>;

const NO_ARGUMENTS: Fields = {};
const malformed = (field: string, problem: string): Result<never, Malformed> => fail({ field, problem });

const named =
  (kind: 'tool' | 'prompt'): Reader =>
  ({ name, arguments: args = NO_ARGUMENTS }) => {
    if (typeof name !== 'string' || name === '') return malformed('params.name', 'must be a non-empty text');
    return isMapping(args) ? ok({ kind, name, args }) : malformed('params.arguments', 'must be an object');
  };

const located: Reader = ({ uri }) =>
  typeof uri === 'string' && uri !== ''
    ? resourceAt(uri, NO_ARGUMENTS)
    : malformed('params.uri', 'must be a non-empty text');

function resourceAt(uri: string, args: Fields): Result<Asked, Malformed> {
  const problem = problemOfUri(uri);
  return problem === undefined ? ok({ kind: 'resource', name: uri, args }) : malformed('the uri', problem);
}

/** A completion is about a prompt or a resource, and sends what was typed so far to its server. */
const completed: Reader = ({ ref, argument }) => {
  if (!isMapping(ref) || !isMapping(argument)) return malformed('params.ref and params.argument', 'must be objects');
  const typed: Fields =
    typeof argument.name === 'string' && argument.name !== '' ? { [argument.name]: argument.value } : NO_ARGUMENTS;
  if (ref.type === 'ref/prompt' && typeof ref.name === 'string' && ref.name !== '')
    return ok({ kind: 'prompt', name: ref.name, args: typed });
  if (ref.type === 'ref/resource' && typeof ref.uri === 'string' && ref.uri !== '') return resourceAt(ref.uri, typed);
  return malformed('params.ref', 'must be a prompt with a name, or a resource with a uri');
};

/** The requests that are checked, and what in them is. */
const CHECKED: ReadonlyMap<string, Reader> = new Map([
  ['tools/call', named('tool')],
  ['prompts/get', named('prompt')],
  ['resources/read', located],
  ['resources/subscribe', located],
  ['completion/complete', completed],
]);

/** Returns the request's checks, or how it is malformed; undefined for requests that need no check. */
export const askedIn = (method: string, params: Fields): Result<Asked, Malformed> | undefined =>
  CHECKED.get(method)?.(params);
