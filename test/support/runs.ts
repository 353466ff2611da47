/** Whether this is `npm run test:soak`. */
const IS_SOAK = process.env.SVC_TEST_SOAK !== undefined;

/** How often a property is tried. A soak tries twenty times as many inputs, and others each time. */
export const runs = (few: number): number => (IS_SOAK ? 20 * few : few);

/** Undefined: another for each run. `npm test` fails for what was changed, and not by chance. */
export const SEED: number | undefined = IS_SOAK ? undefined : 1;
