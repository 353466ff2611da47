/** JSON-RPC 2.0 as MCP uses it: what a message is, and the answers that the guard gives itself. */
import { isMapping } from '../core/base/mapping.ts';

export type Id = string | number;
export type Fields = Readonly<Record<string, unknown>>;
export type RpcError = { readonly code: number; readonly message: string; readonly data?: unknown };

export type Request = {
  readonly jsonrpc: '2.0';
  readonly id: Id;
  readonly method: string;
  readonly params?: Fields;
};
export type Notification = { readonly jsonrpc: '2.0'; readonly method: string; readonly params?: Fields };
export type Answer = {
  readonly jsonrpc: '2.0';
  readonly id: Id;
  readonly result?: Fields;
  readonly error?: RpcError;
};
export type Message = Request | Notification | Answer;

/** The codes of JSON-RPC, and one of the guard's own for what is not allowed. */
export const RPC_CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  denied: -32003,
} as const;

export const isId = (value: unknown): value is Id => typeof value === 'string' || typeof value === 'number';

/** The message in a value that was read from the wire; undefined when it is none. */
export function messageIn(value: unknown): Message | undefined {
  if (!isMapping(value) || value.jsonrpc !== '2.0') return undefined;
  if (value.params !== undefined && !isMapping(value.params)) return undefined;
  if (typeof value.method === 'string')
    return value.id === undefined || isId(value.id) ? (value as Message) : undefined;
  if (!isId(value.id)) return undefined;
  if (isMapping(value.error)) {
    const { code, message } = value.error;
    return typeof code === 'number' && typeof message === 'string' ? (value as Message) : undefined;
  }
  return isMapping(value.result) ? (value as Message) : undefined;
}

export const isRequest = (message: Message): message is Request => 'method' in message && 'id' in message;
export const isNotification = (message: Message): message is Notification => 'method' in message && !('id' in message);

export const resultOf = (id: Id, result: Fields): Answer => ({ jsonrpc: '2.0', id, result });

export const errorOf = (id: Id, code: number, message: string): Answer => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

export const notificationOf = (method: string, params?: Fields): Notification =>
  params === undefined ? { jsonrpc: '2.0', method } : { jsonrpc: '2.0', method, params };

/** The token under which a request wants progress; undefined when it wants none. */
export function progressTokenOf({ params }: Request): Id | undefined {
  const meta = params?._meta;
  return isMapping(meta) && isId(meta.progressToken) ? meta.progressToken : undefined;
}
