// The server under test for the conformance suite: passes its questions on to the test that runs the suite, at the port
// in the first argument, and the answers back. Ends when the suite does not need the server any more.
import { connect } from 'node:net';

const socket = connect(Number(process.argv[2]), '127.0.0.1');
process.stdin.pipe(socket, { end: false });
socket.pipe(process.stdout);
socket.on('close', () => process.exit());
process.on('SIGTERM', () => process.exit());
