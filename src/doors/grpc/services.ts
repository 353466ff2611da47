/** The health service (docs/spec.md, gRPC), for the existing services. */
import type { Server, ServerUnaryCall, ServerWritableStream, ServiceDefinition, sendUnaryData } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { cutText } from '../../core/base/text.ts';

type Request = { readonly service: string };
type Handlers = {
  readonly check: (call: ServerUnaryCall<Request, unknown>, respond: sendUnaryData<unknown>) => void;
  readonly watch: (call: ServerWritableStream<Request, unknown>) => void;
};

/** In characters, for the name of an unknown service. */
const MAX_SHOWN_NAME = 64;

/**
 * The library echoes every unknown name, and remembers every name that was ever watched: up to 4 MiB each, for any
 * caller. So it is given only the beginning of an unknown name, and unknown names are not watched, since no services
 * are added later.
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
  health.addToServer({
    addService: (service: ServiceDefinition, handlers: Handlers) =>
      server.addService(service, bounded(handlers) as never),
  } as Server);
  return health;
}
