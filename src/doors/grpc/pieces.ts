import type { ServerHttp2Stream } from 'node:http2';

/** In bytes. A client that reads no more than this within its time counts as stalled. */
const PIECE_BYTES = 16 * 1024;

type Chunks = readonly { readonly chunk: Buffer; readonly encoding: BufferEncoding }[];
type Done = (error?: Error | null) => void;

/**
 * Makes a stream pass on what is written to it in pieces of at most `PIECE_BYTES`, and calls `onLeft` as each has left.
 * Otherwise everything that has gathered while the client was slow goes as one, and a client that reads cannot be told
 * from one that does not. Only for streams that end with trailers, as those of gRPC do: any other is ended by the
 * library with its last write.
 */
export function writeInPieces(stream: ServerHttp2Stream, onLeft: () => void): void {
  const handOn = stream._writev!.bind(stream);
  const handOnOne = stream._write.bind(stream);
  const left =
    (done: Done): Done =>
    (error) => {
      onLeft();
      done(error);
    };

  const writePieces = (pieces: readonly Buffer[], done: Done): void => {
    let end = 1;
    for (let bytes = pieces[0]!.length; end < pieces.length && (bytes += pieces[end]!.length) <= PIECE_BYTES; )
      end += 1;
    const rest = pieces.slice(end);
    handOn(
      pieces.slice(0, end).map((chunk) => ({ chunk, encoding: 'utf8' })),
      left((error) => {
        if (rest.length === 0 || error != null) done(error);
        else writePieces(rest, done);
      }),
    );
  };

  stream._write = (chunk: Buffer, encoding, done) => {
    if (chunk.length <= PIECE_BYTES) handOnOne(chunk, encoding, left(done));
    else writePieces(piecesOf(chunk), done);
  };
  stream._writev = (chunks: Chunks, done) => {
    if (chunks.reduce((bytes, { chunk }) => bytes + chunk.length, 0) <= PIECE_BYTES)
      handOn(chunks as never, left(done));
    else
      writePieces(
        chunks.flatMap(({ chunk }) => (chunk.length <= PIECE_BYTES ? chunk : piecesOf(chunk))),
        done,
      );
  };
}

function piecesOf(chunk: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < chunk.length; at += PIECE_BYTES) pieces.push(chunk.subarray(at, at + PIECE_BYTES));
  return pieces;
}
