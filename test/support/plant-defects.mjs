/**
 * Loaded into a gateway under test with --import, and so into each of its threads: what reads one of these requests
 * fails, as it would for a defect of the gateway. Each is read by a function of the language that a door calls.
 */

/** Over Connect and HTTP, as the query. */
const QUERY = 'planted-defect';
/** Over gRPC, as the deadline. */
const DEADLINE = '66666666S';

const planted = () => new Error('planted by a test');

const Params = globalThis.URLSearchParams;
globalThis.URLSearchParams = class extends Params {
  constructor(text) {
    if (text === QUERY) throw planted();
    super(text);
  }
};

const { exec } = RegExp.prototype;
RegExp.prototype.exec = function (text) {
  if (text === DEADLINE) throw planted();
  return exec.call(this, text);
};
