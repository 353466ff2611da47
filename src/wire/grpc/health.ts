/** The health service (contract: gRPC), for the services that there are. */
import type { sendUnaryData, Server, ServerUnaryCall, ServerWritableStream, ServiceDefinition } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { cutText } from '../../core/cut-text.ts';

type Request = { readonly service: string };
type Handlers = {
  readonly check: (call: ServerUnaryCall<Request, unknown>, respond: sendUnaryData<unknown>) => void;
  readonly watch: (call: ServerWritableStream<Request, unknown>) => void;
};

/** In characters, of the name of a service that there is none of. */
const MAX_SHOWN_NAME = 64;

/**
 * The library says back each name that it does not know, and remembers each that was ever watched: of up to 4 MiB, for anybody.
 * So it is told only the beginning of an unknown name, and what is not known is not watched: none is added later.
 */
export function addHealth(server: Server, services: readonly string[]): HealthImplementation {
  const health = new HealthImplementation(Object.fromEntries(services.map((service) => [service, 'SERVING' as const])));
  const bounded = ({ check, watch, ...others }: Handlers): object => ({
    ...others,
    check: (call: ServerUnaryCall<Request, unknown>, respond: sendUnaryData<unknown>) => {
      call.request = { service: cutText(call.request.service, MAX_SHOWN_NAME) };
      check(call, respond);
    },
    watch: (call: ServerWritableStream<Request, unknown>) => {
      if (services.includes(call.request.service)) watch(call);
      else call.write({ status: 'SERVICE_UNKNOWN' });
    },
  });
  health.addToServer({ addService: (service: ServiceDefinition, handlers: Handlers) => server.addService(service, bounded(handlers) as never) } as unknown as Server);
  return health;
}
