/** Frames of the live stream, as a gateway sends them. */
import type { Frame } from '../src/live/frame.ts';
import { OpsModel } from '../src/live/ops-model.ts';

const AT_MS = Date.parse('2026-03-01T12:00:00Z');

export type Given = {
  readonly id?: string;
  readonly org?: string | null;
  readonly team?: string;
  readonly agent?: string;
  readonly state?: string;
  readonly home?: string;
  /** In seconds after noon. */
  readonly registered?: number;
  readonly updated?: number;
  readonly payload?: Readonly<Record<string, unknown>>;
};

const at = (secs: number): string => new Date(AT_MS + secs * 1_000).toISOString();

export const opFrame = (given: Given = {}): Frame => {
  const { id = 't:s', org = 'acme', team = 'search', agent = 'crawler', state = 'running', home } = given;
  return {
    id: '1',
    event_type: 'ops_change',
    org_id: org,
    agent_id: agent,
    timestamp: at(given.updated ?? 1),
    payload: {
      op_id: id,
      ...(home === undefined ? {} : { op_home: home }),
      state,
      team_id: team,
      registered_at: at(given.registered ?? 0),
      updated_at: at(given.updated ?? 1),
      ...given.payload,
    },
  };
};

/** A model that has had these frames, at noon. */
export function modelOf(...frames: readonly Frame[]): OpsModel {
  const model = new OpsModel();
  model.begin({ opCount: frames.length, finishedTtlMs: 60_000 }, AT_MS);
  for (const frame of frames) model.apply(frame, AT_MS);
  return model;
}

export const NOON_MS = AT_MS;
