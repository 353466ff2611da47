/** A model that runs one shell command and then says "done", for Claude Code, Codex, Gemini CLI and Copilot. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ModelServer = {
  readonly url: string;
  /** Results of the command that the agents sent back. */
  readonly results: readonly string[];
  close(): void;
};

/** An event of the stream; one without a type is data alone. */
type Send = (type: string, fields: object) => void;

/** A call of a tool, by the name that Claude Code gives it. */
type ToolCall = { readonly name: string; readonly input: object };

/** `command`: what it answers the first request of each agent with; of Claude Code, it may ask for another tool. */
export async function startModelServer(
  command: string,
  claudeCall: ToolCall = { name: 'Bash', input: { command, description: 'x' } },
): Promise<ModelServer> {
  const results: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    request.on('end', () => {
      const path = request.url ?? '';
      if (path.endsWith('/responses')) return streamTo(response, (send) => answerCodex(send, JSON.parse(text)));
      if (/\/messages(\?|$)/.test(path)) return streamTo(response, (send) => answerClaude(send, JSON.parse(text)));
      if (path.endsWith('/chat/completions'))
        return streamTo(response, (send) => answerCopilot(send, JSON.parse(text)));
      if (path.includes(':streamGenerateContent'))
        return streamTo(response, (send) => send('', answerGemini(JSON.parse(text))));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  function answerCodex(send: Send, { input }: { readonly input: readonly { readonly type: string }[] }): void {
    const outputs = input.filter(({ type }) => type === 'function_call_output');
    results.push(...outputs.map((output) => JSON.stringify(output)));
    const call = { type: 'function_call', id: 'fc', call_id: 'call_1', name: 'exec_command' };
    const item =
      outputs.length === 0
        ? { ...call, arguments: JSON.stringify({ cmd: command }) }
        : { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'done' }] };
    send('response.created', { response: { id: 'r' } });
    send('response.output_item.done', { item });
    send('response.completed', {
      response: { id: 'r', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
    });
  }

  function answerClaude(
    send: Send,
    { messages, tools = [] }: { messages: readonly any[]; tools?: readonly any[] },
  ): void {
    const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const done = blocks.filter(({ type }) => type === 'tool_result');
    results.push(...done.map((result) => JSON.stringify(result)));
    const isCall = done.length === 0 && tools.some(({ name }) => name === claudeCall.name);
    const usage = { input_tokens: 1, output_tokens: 1 };
    send('message_start', {
      message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage },
    });
    send('content_block_start', {
      index: 0,
      content_block: isCall
        ? { type: 'tool_use', id: 'toolu_1', name: claudeCall.name, input: {} }
        : { type: 'text', text: '' },
    });
    send('content_block_delta', {
      index: 0,
      delta: isCall
        ? { type: 'input_json_delta', partial_json: JSON.stringify(claudeCall.input) }
        : { type: 'text_delta', text: 'done' },
    });
    send('content_block_stop', { index: 0 });
    send('message_delta', { delta: { stop_reason: isCall ? 'tool_use' : 'end_turn' }, usage: { output_tokens: 1 } });
    send('message_stop', {});
  }

  function answerCopilot(send: Send, { messages }: { readonly messages: readonly { readonly role: string }[] }): void {
    const done = messages.filter(({ role }) => role === 'tool');
    results.push(...done.map((message) => JSON.stringify(message)));
    const call = { name: 'bash', arguments: JSON.stringify({ command, description: 'x' }) };
    const [delta, finish] =
      done.length === 0
        ? [{ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] }, 'tool_calls']
        : [{ content: 'done' }, 'stop'];
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
    send('', { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }] });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    send('', { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }], usage });
  }

  function answerGemini({ contents }: { readonly contents: readonly any[] }): object {
    const parts = contents.flatMap((content) => content.parts ?? []);
    const done = parts.filter(({ functionResponse }) => functionResponse !== undefined);
    results.push(...done.map((part) => JSON.stringify(part)));
    const part =
      done.length === 0
        ? { functionCall: { name: 'run_shell_command', args: { command, description: 'x' } } }
        : { text: 'done' };
    return {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    results,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function streamTo(response: ServerResponse, answer: (send: Send) => void): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  answer((type, fields) =>
    response.write(
      type === ''
        ? `data: ${JSON.stringify(fields)}\n\n`
        : `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`,
    ),
  );
  response.end();
}
