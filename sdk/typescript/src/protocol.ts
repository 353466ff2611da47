/** Generated from proto/ by `npm run proto`: do not edit. */
export const PROTOCOL = {
  nested: {
    svc: {
      nested: {
        governance: {
          nested: {
            v1: {
              options: { go_package: 'svc/governance/v1;governancev1', java_multiple_files: true },
              nested: {
                PolicyService: {
                  methods: {
                    CheckAction: { requestType: 'CheckActionRequest', responseType: 'CheckActionResponse' },
                    BatchCheckActions: {
                      requestType: 'BatchCheckActionsRequest',
                      responseType: 'BatchCheckActionsResponse',
                    },
                    StreamCheckActions: {
                      requestType: 'StreamCheckActionsRequest',
                      requestStream: true,
                      responseType: 'StreamCheckActionsResponse',
                      responseStream: true,
                    },
                  },
                },
                Decision: {
                  values: { DECISION_UNSPECIFIED: 0, DECISION_ALLOW: 1, DECISION_DENY: 2, DECISION_PENDING: 3 },
                },
                DecisionCause: {
                  values: {
                    DECISION_CAUSE_UNSPECIFIED: 0,
                    DECISION_CAUSE_RULE: 1,
                    DECISION_CAUSE_NO_RULE: 2,
                    DECISION_CAUSE_CONDITION_ERROR: 3,
                    DECISION_CAUSE_BUDGET: 4,
                    DECISION_CAUSE_CREDENTIAL: 5,
                    DECISION_CAUSE_OPERATION_STATE: 6,
                    DECISION_CAUSE_HALT: 7,
                    DECISION_CAUSE_APPROVAL: 8,
                    DECISION_CAUSE_OBLIGATION: 9,
                    DECISION_CAUSE_UNRECORDED: 10,
                    DECISION_CAUSE_LIMIT: 11,
                  },
                },
                CheckActionRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    traceId: { type: 'string', id: 3, protoName: 'trace_id' },
                    spanId: { type: 'string', id: 4, protoName: 'span_id' },
                    action: { type: 'string', id: 5 },
                    resource: { type: 'string', id: 6 },
                    attributes: { type: 'google.protobuf.Struct', id: 7 },
                    estimatedCostUsd: { type: 'double', id: 8, protoName: 'estimated_cost_usd' },
                    caller: { type: 'AgentId', id: 9 },
                    dryRun: { type: 'bool', id: 10, protoName: 'dry_run' },
                    correlationId: { type: 'string', id: 11, protoName: 'correlation_id' },
                    supportedObligations: {
                      rule: 'repeated',
                      type: 'string',
                      id: 12,
                      protoName: 'supported_obligations',
                    },
                    opHome: { type: 'string', id: 13, protoName: 'op_home' },
                  },
                },
                CheckActionResponse: {
                  fields: {
                    decision: { type: 'Decision', id: 1 },
                    reason: { type: 'string', id: 2 },
                    policy: { type: 'string', id: 3 },
                    ruleId: { type: 'string', id: 4, protoName: 'rule_id' },
                    opId: { type: 'string', id: 5, protoName: 'op_id' },
                    opState: { type: 'OpState', id: 6, protoName: 'op_state' },
                    auditId: { type: 'uint64', id: 7, protoName: 'audit_id' },
                    correlationId: { type: 'string', id: 8, protoName: 'correlation_id' },
                    cause: { type: 'DecisionCause', id: 10 },
                    tier: { type: 'BudgetTier', id: 11 },
                    period: { type: 'BudgetPeriod', id: 12 },
                    resetsAt: { type: 'google.protobuf.Timestamp', id: 13, protoName: 'resets_at' },
                    approvalId: { type: 'string', id: 14, protoName: 'approval_id' },
                    obligations: { rule: 'repeated', type: 'Obligation', id: 15 },
                    opHome: { type: 'string', id: 16, protoName: 'op_home' },
                    remedy: { type: 'string', id: 17 },
                  },
                },
                Obligation: {
                  fields: {
                    id: { type: 'string', id: 1 },
                    type: { type: 'string', id: 2 },
                    properties: { type: 'google.protobuf.Struct', id: 3 },
                  },
                },
                BatchCheckActionsRequest: {
                  fields: { requests: { rule: 'repeated', type: 'CheckActionRequest', id: 1 } },
                },
                BatchCheckActionsResponse: {
                  fields: { responses: { rule: 'repeated', type: 'StreamCheckActionsResponse', id: 1 } },
                },
                StreamCheckActionsRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    traceId: { type: 'string', id: 3, protoName: 'trace_id' },
                    spanId: { type: 'string', id: 4, protoName: 'span_id' },
                    action: { type: 'string', id: 5 },
                    resource: { type: 'string', id: 6 },
                    attributes: { type: 'google.protobuf.Struct', id: 7 },
                    estimatedCostUsd: { type: 'double', id: 8, protoName: 'estimated_cost_usd' },
                    caller: { type: 'AgentId', id: 9 },
                    dryRun: { type: 'bool', id: 10, protoName: 'dry_run' },
                    correlationId: { type: 'string', id: 11, protoName: 'correlation_id' },
                    supportedObligations: {
                      rule: 'repeated',
                      type: 'string',
                      id: 12,
                      protoName: 'supported_obligations',
                    },
                    opHome: { type: 'string', id: 13, protoName: 'op_home' },
                  },
                },
                StreamCheckActionsResponse: {
                  fields: {
                    decision: { type: 'Decision', id: 1 },
                    reason: { type: 'string', id: 2 },
                    policy: { type: 'string', id: 3 },
                    ruleId: { type: 'string', id: 4, protoName: 'rule_id' },
                    opId: { type: 'string', id: 5, protoName: 'op_id' },
                    opState: { type: 'OpState', id: 6, protoName: 'op_state' },
                    auditId: { type: 'uint64', id: 7, protoName: 'audit_id' },
                    correlationId: { type: 'string', id: 8, protoName: 'correlation_id' },
                    error: { type: 'CheckError', id: 9 },
                    cause: { type: 'DecisionCause', id: 10 },
                    tier: { type: 'BudgetTier', id: 11 },
                    period: { type: 'BudgetPeriod', id: 12 },
                    resetsAt: { type: 'google.protobuf.Timestamp', id: 13, protoName: 'resets_at' },
                    approvalId: { type: 'string', id: 14, protoName: 'approval_id' },
                    obligations: { rule: 'repeated', type: 'Obligation', id: 15 },
                    opHome: { type: 'string', id: 16, protoName: 'op_home' },
                    remedy: { type: 'string', id: 17 },
                  },
                },
                CheckError: {
                  fields: {
                    code: { type: 'string', id: 1 },
                    message: { type: 'string', id: 2 },
                    retryAfterSecs: { type: 'uint32', id: 3, protoName: 'retry_after_secs' },
                  },
                },
                AgentId: {
                  fields: {
                    orgId: { type: 'string', id: 1, protoName: 'org_id' },
                    teamId: { type: 'string', id: 2, protoName: 'team_id' },
                    agentId: { type: 'string', id: 3, protoName: 'agent_id' },
                  },
                },
                BudgetTier: {
                  values: {
                    BUDGET_TIER_UNSPECIFIED: 0,
                    BUDGET_TIER_GLOBAL: 1,
                    BUDGET_TIER_ORG: 2,
                    BUDGET_TIER_TEAM: 3,
                    BUDGET_TIER_AGENT: 4,
                  },
                },
                BudgetPeriod: {
                  values: { BUDGET_PERIOD_UNSPECIFIED: 0, BUDGET_PERIOD_MONTHLY: 1, BUDGET_PERIOD_DAILY: 2 },
                },
                OpState: {
                  values: {
                    OP_STATE_UNSPECIFIED: 0,
                    OP_STATE_PENDING: 1,
                    OP_STATE_RUNNING: 2,
                    OP_STATE_PAUSED: 3,
                    OP_STATE_COMPLETING: 4,
                    OP_STATE_TERMINATED: 5,
                  },
                },
                OpSignal: {
                  values: { OP_SIGNAL_UNSPECIFIED: 0, OP_SIGNAL_PAUSE: 1, OP_SIGNAL_RESUME: 2, OP_SIGNAL_TERMINATE: 3 },
                },
                Outcome: { values: { OUTCOME_UNSPECIFIED: 0, OUTCOME_SUCCESS: 1, OUTCOME_FAILURE: 2 } },
                AgentService: {
                  methods: {
                    RegisterAgent: { requestType: 'RegisterAgentRequest', responseType: 'RegisterAgentResponse' },
                    DeregisterAgent: { requestType: 'DeregisterAgentRequest', responseType: 'DeregisterAgentResponse' },
                    CompleteOp: { requestType: 'CompleteOpRequest', responseType: 'CompleteOpResponse' },
                    RecordUsage: { requestType: 'RecordUsageRequest', responseType: 'RecordUsageResponse' },
                    OpControlStream: {
                      requestType: 'OpControlStreamRequest',
                      responseType: 'OpControlStreamResponse',
                      responseStream: true,
                    },
                    AckOpControl: { requestType: 'AckOpControlRequest', responseType: 'AckOpControlResponse' },
                  },
                },
                RegisterAgentRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    parent: { type: 'AgentId', id: 3 },
                  },
                },
                RegisterAgentResponse: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    rotated: { type: 'bool', id: 3 },
                  },
                },
                DeregisterAgentRequest: { fields: { agent: { type: 'AgentId', id: 1 } } },
                DeregisterAgentResponse: { fields: {} },
                CompleteOpRequest: {
                  oneofs: {
                    _costUsd: { oneof: ['costUsd'] },
                    _inputTokens: { oneof: ['inputTokens'] },
                    _outputTokens: { oneof: ['outputTokens'] },
                    _cacheReadTokens: { oneof: ['cacheReadTokens'] },
                    _cacheWriteTokens: { oneof: ['cacheWriteTokens'] },
                  },
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    opId: { type: 'string', id: 3, protoName: 'op_id' },
                    costUsd: { type: 'double', id: 4, protoName: 'cost_usd', options: { proto3_optional: true } },
                    outcome: { type: 'Outcome', id: 5 },
                    error: { type: 'string', id: 6 },
                    opHome: { type: 'string', id: 7, protoName: 'op_home' },
                    model: { type: 'string', id: 8 },
                    provider: { type: 'string', id: 9 },
                    inputTokens: {
                      type: 'uint64',
                      id: 10,
                      protoName: 'input_tokens',
                      options: { proto3_optional: true },
                    },
                    outputTokens: {
                      type: 'uint64',
                      id: 11,
                      protoName: 'output_tokens',
                      options: { proto3_optional: true },
                    },
                    cacheReadTokens: {
                      type: 'uint64',
                      id: 12,
                      protoName: 'cache_read_tokens',
                      options: { proto3_optional: true },
                    },
                    cacheWriteTokens: {
                      type: 'uint64',
                      id: 13,
                      protoName: 'cache_write_tokens',
                      options: { proto3_optional: true },
                    },
                  },
                },
                CompleteOpResponse: {
                  oneofs: { _costUsd: { oneof: ['costUsd'] } },
                  fields: {
                    opId: { type: 'string', id: 1, protoName: 'op_id' },
                    opState: { type: 'OpState', id: 2, protoName: 'op_state' },
                    costUsd: { type: 'double', id: 3, protoName: 'cost_usd', options: { proto3_optional: true } },
                  },
                },
                RecordUsageRequest: {
                  oneofs: {
                    _costUsd: { oneof: ['costUsd'] },
                    _opId: { oneof: ['opId'] },
                    _usageId: { oneof: ['usageId'] },
                    _inputTokens: { oneof: ['inputTokens'] },
                    _outputTokens: { oneof: ['outputTokens'] },
                    _cacheReadTokens: { oneof: ['cacheReadTokens'] },
                    _cacheWriteTokens: { oneof: ['cacheWriteTokens'] },
                  },
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    costUsd: { type: 'double', id: 3, protoName: 'cost_usd', options: { proto3_optional: true } },
                    opId: { type: 'string', id: 4, protoName: 'op_id', options: { proto3_optional: true } },
                    usageId: { type: 'string', id: 5, protoName: 'usage_id', options: { proto3_optional: true } },
                    opHome: { type: 'string', id: 6, protoName: 'op_home' },
                    model: { type: 'string', id: 7 },
                    provider: { type: 'string', id: 8 },
                    inputTokens: {
                      type: 'uint64',
                      id: 9,
                      protoName: 'input_tokens',
                      options: { proto3_optional: true },
                    },
                    outputTokens: {
                      type: 'uint64',
                      id: 10,
                      protoName: 'output_tokens',
                      options: { proto3_optional: true },
                    },
                    cacheReadTokens: {
                      type: 'uint64',
                      id: 11,
                      protoName: 'cache_read_tokens',
                      options: { proto3_optional: true },
                    },
                    cacheWriteTokens: {
                      type: 'uint64',
                      id: 12,
                      protoName: 'cache_write_tokens',
                      options: { proto3_optional: true },
                    },
                  },
                },
                RecordUsageResponse: {
                  oneofs: { _costUsd: { oneof: ['costUsd'] } },
                  fields: {
                    status: { type: 'BudgetStatus', id: 1 },
                    tier: { type: 'BudgetTier', id: 2 },
                    period: { type: 'BudgetPeriod', id: 3 },
                    costUsd: { type: 'double', id: 4, protoName: 'cost_usd', options: { proto3_optional: true } },
                  },
                },
                BudgetStatus: {
                  values: { BUDGET_STATUS_UNSPECIFIED: 0, BUDGET_STATUS_OK: 1, BUDGET_STATUS_LIMIT_EXCEEDED: 2 },
                },
                OpControlStreamRequest: {
                  oneofs: { _resumeAfter: { oneof: ['resumeAfter'] } },
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    resumeAfter: {
                      type: 'uint64',
                      id: 3,
                      protoName: 'resume_after',
                      options: { proto3_optional: true },
                    },
                  },
                },
                OpControlStreamResponse: {
                  fields: {
                    opId: { type: 'string', id: 1, protoName: 'op_id' },
                    signal: { type: 'OpSignal', id: 2 },
                    sequence: { type: 'uint64', id: 3 },
                  },
                },
                AckOpControlRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    opId: { type: 'string', id: 3, protoName: 'op_id' },
                    sequence: { type: 'uint64', id: 4 },
                    opHome: { type: 'string', id: 5, protoName: 'op_home' },
                  },
                },
                AckOpControlResponse: { fields: {} },
                ApprovalService: {
                  methods: {
                    WaitApproval: { requestType: 'WaitApprovalRequest', responseType: 'WaitApprovalResponse' },
                    CancelApproval: { requestType: 'CancelApprovalRequest', responseType: 'CancelApprovalResponse' },
                  },
                },
                ApprovalState: {
                  values: {
                    APPROVAL_STATE_UNSPECIFIED: 0,
                    APPROVAL_STATE_PENDING: 1,
                    APPROVAL_STATE_APPROVED: 2,
                    APPROVAL_STATE_DENIED: 3,
                    APPROVAL_STATE_EXPIRED: 4,
                    APPROVAL_STATE_CANCELLED: 5,
                    APPROVAL_STATE_USED: 6,
                  },
                },
                WaitApprovalRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    approvalId: { type: 'string', id: 3, protoName: 'approval_id' },
                  },
                },
                WaitApprovalResponse: {
                  fields: {
                    approvalId: { type: 'string', id: 1, protoName: 'approval_id' },
                    state: { type: 'ApprovalState', id: 2 },
                    reason: { type: 'string', id: 3 },
                    expiresAt: { type: 'google.protobuf.Timestamp', id: 4, protoName: 'expires_at' },
                  },
                },
                CancelApprovalRequest: {
                  fields: {
                    agent: { type: 'AgentId', id: 1 },
                    credentialToken: { type: 'string', id: 2, protoName: 'credential_token' },
                    approvalId: { type: 'string', id: 3, protoName: 'approval_id' },
                  },
                },
                CancelApprovalResponse: {
                  fields: {
                    approvalId: { type: 'string', id: 1, protoName: 'approval_id' },
                    state: { type: 'ApprovalState', id: 2 },
                  },
                },
              },
            },
          },
        },
      },
    },
    google: {
      nested: {
        protobuf: {
          nested: {
            Struct: { fields: { fields: { keyType: 'string', type: 'Value', id: 1 } } },
            Value: {
              oneofs: {
                kind: { oneof: ['nullValue', 'numberValue', 'stringValue', 'boolValue', 'structValue', 'listValue'] },
              },
              fields: {
                nullValue: { type: 'NullValue', id: 1, protoName: 'null_value' },
                numberValue: { type: 'double', id: 2, protoName: 'number_value' },
                stringValue: { type: 'string', id: 3, protoName: 'string_value' },
                boolValue: { type: 'bool', id: 4, protoName: 'bool_value' },
                structValue: { type: 'Struct', id: 5, protoName: 'struct_value' },
                listValue: { type: 'ListValue', id: 6, protoName: 'list_value' },
              },
            },
            NullValue: { values: { NULL_VALUE: 0 } },
            ListValue: { fields: { values: { rule: 'repeated', type: 'Value', id: 1 } } },
            Timestamp: { fields: { seconds: { type: 'int64', id: 1 }, nanos: { type: 'int32', id: 2 } } },
          },
        },
      },
    },
  },
};
