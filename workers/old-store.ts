/** Entry of the process that reads the store of an earlier release: its folder and the new file are the arguments. */
import { convertOldStore } from '../src/stores/embedded/lmdb.ts';

const [, , folder = '', target = ''] = process.argv;
process.stdout.write(JSON.stringify(await convertOldStore(folder, target)));
