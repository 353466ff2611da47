/** The health service, grpc.health.v1.Health, for the services of the door. */
import { fail, ok } from '../../core/base/result.ts';
import { BinaryReader } from '../proto/binary-reader.ts';
import { attempt } from '../proto/schema.ts';
import { quoted } from './head.ts';
import { type Methods, type Outcome, type Sender, serverStream, unary } from './method.ts';
import { CODE, grpcError } from './status.ts';

/** A name is short. */
const MAX_REQUEST_BYTES = 4 * 1024;

export const HEALTH_SERVICE = 'grpc.health.v1.Health';

const SERVING_STATUS = { serving: 1, 'not serving': 2, 'service unknown': 3 } as const;
type ServingStatus = keyof typeof SERVING_STATUS;

/** Field 1 of a request, with the wire type of a text; and of an answer, with that of an enum. */
const SERVICE_TAG = 0x0a;
const STATUS_TAG = 0x08;

export type Health = {
  readonly methods: Methods;
  /** Tells everybody who watches that nothing is served any more, and ends their streams. */
  readonly drain: () => void;
};

/** `services` are the names that may be asked for; the empty one stands for all. */
export function healthService(services: readonly string[]): Health {
  const watchers = new Set<Sender<ServingStatus>>();
  let status: ServingStatus = 'serving';
  const check = unary({
    decode: decodeService,
    encode: encodeStatus,
    maxBytes: MAX_REQUEST_BYTES,
    handle: async (service) =>
      services.includes(service)
        ? ok(status)
        : fail({ code: CODE.not_found, details: `Health status unknown for service ${quoted(service)}` }),
  });
  const watch = serverStream({
    decode: decodeService,
    encode: encodeStatus,
    maxBytes: MAX_REQUEST_BYTES,
    isPublic: true, // load balancers watch without a credential
    handle: (service, to: Sender<ServingStatus>) => {
      // No services are added later, so what is unknown stays so.
      to.write(services.includes(service) ? status : 'service unknown');
      if (services.includes(service)) watchers.add(to);
      return { over: () => watchers.delete(to) };
    },
  });
  return {
    methods: new Map([
      [`/${HEALTH_SERVICE}/Check`, check],
      [`/${HEALTH_SERVICE}/Watch`, watch],
    ]),
    drain: () => {
      status = 'not serving';
      for (const to of [...watchers]) {
        to.write(status);
        to.call.end(grpcError({ kind: 'shutting_down', retryAfterSecs: 1 }));
      }
    },
  };
}

const decodeService = (bytes: Buffer): Outcome<string> =>
  attempt(() => {
    const reader = new BinaryReader(bytes);
    let service = '';
    while (reader.position < reader.end) {
      const tag = reader.tag();
      if (tag === SERVICE_TAG) service = reader.string('service');
      else reader.skip(tag);
    }
    reader.finish();
    return service;
  });

const encodeStatus = (status: ServingStatus): Buffer => Buffer.from([STATUS_TAG, SERVING_STATUS[status]]);
