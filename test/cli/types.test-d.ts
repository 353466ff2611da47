/** Types that the compiler must or must not take. Checked by `npm run typecheck`, never run. */
import { expectTypeOf } from 'vitest';
import type { requestOf } from '../../src/cli/commands/check.ts';
import type { CheckActionRequest } from '../../src/doors/proto/messages.ts';

// `svc check` says of a check whatever the gateway reads; it has no need to tell one answer from another.
expectTypeOf<keyof ReturnType<typeof requestOf>>().toEqualTypeOf<Exclude<keyof CheckActionRequest, 'correlationId'>>();
