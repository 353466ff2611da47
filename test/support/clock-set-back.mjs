/**
 * Loaded into a gateway under test with --import, and so into each of its threads: the wall clock is set back by an
 * hour while the file $CLOCK_SET_BACK is there.
 */
import { existsSync } from 'node:fs';

const { now } = Date;
Date.now = () => now() - (existsSync(process.env.CLOCK_SET_BACK) ? 3_600_000 : 0);
