package agent;

import com.google.protobuf.ListValue;
import com.google.protobuf.NullValue;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.MetadataUtils;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import svc.governance.v1.AgentId;
import svc.governance.v1.AgentServiceGrpc;
import svc.governance.v1.ApprovalServiceGrpc;
import svc.governance.v1.ApprovalState;
import svc.governance.v1.CheckActionRequest;
import svc.governance.v1.CheckActionResponse;
import svc.governance.v1.CompleteOpRequest;
import svc.governance.v1.Decision;
import svc.governance.v1.Outcome;
import svc.governance.v1.PolicyServiceGrpc;
import svc.governance.v1.RegisterAgentRequest;
import svc.governance.v1.WaitApprovalRequest;

/**
 * A small client of the svc-gateway over its generated code: check, act, complete. Without an answer nothing is done. One
 * agent, whose client may be used by any number of threads.
 */
public final class Gateway implements AutoCloseable {
  /** How long a call may take, with the wait for a gateway that restarts. */
  private static final Duration CALL = Duration.ofSeconds(5);

  /** How long people have to decide on an action that waits for them. */
  private static final Duration APPROVAL = Duration.ofMinutes(15);

  /** At which a pending approval is asked for again at the earliest. */
  private static final Duration ASK_AGAIN = Duration.ofSeconds(1);

  /** The gateway answers a wait after a minute at the latest. */
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(65);

  private static final int MAX_ERROR_BYTES = 1024;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final ManagedChannel channel;
  private final AgentId agent;
  private final String token;

  /** What an agent wants to do. */
  public record Action(String name, String resource, Map<String, Object> attributes, double estimatedCostUsd) {}

  /** The action must not be taken: the body of {@code run} was not called. */
  public static final class DeniedException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Why, in one sentence for people. */
    public final String reason;

    /** What the agent may do instead; empty if the policy does not say. */
    public final String remedy;

    /** Why, in one word for programs. */
    public final String cause;

    /** The approval that decided; empty if none did. */
    public final String approvalId;

    DeniedException(Action action, CheckActionResponse answer) {
      super("%s on %s is denied: %s".formatted(action.name(), action.resource(), answer.getReason()));
      reason = answer.getReason();
      remedy = answer.getRemedy();
      cause = answer.getCause().name().replace("DECISION_CAUSE_", "").toLowerCase(Locale.ROOT);
      approvalId = answer.getApprovalId();
    }
  }

  /**
   * Registers the agent, named {@code <org>/<team>/<agent>}, by an API key with write scope. The connection is not
   * encrypted: for a gateway on another machine, use {@code TlsChannelCredentials} in place of the insecure ones.
   */
  public Gateway(String address, String agentName, String apiKey) {
    String[] name = agentName.split("/", -1);
    if (name.length != 3) {
      throw new IllegalArgumentException("the agent must be <org>/<team>/<agent>, and is " + agentName);
    }
    agent = AgentId.newBuilder().setOrgId(name[0]).setTeamId(name[1]).setAgentId(name[2]).build();
    // A gateway that answers is not always able to: then the call is tried again.
    Map<String, ?> retries =
        Map.of(
            "maxAttempts", 4.0,
            "initialBackoff", "0.1s",
            "maxBackoff", "1s",
            "backoffMultiplier", 2.0,
            "retryableStatusCodes", List.of("UNAVAILABLE"));
    List<Map<String, String>> services =
        List.of(
            Map.of("service", PolicyServiceGrpc.SERVICE_NAME), Map.of("service", AgentServiceGrpc.SERVICE_NAME));
    channel =
        Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
            .enableRetry()
            .defaultServiceConfig(Map.of("methodConfig", List.of(Map.of("name", services, "retryPolicy", retries))))
            .build();
    Metadata bearer = new Metadata();
    bearer.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + apiKey);
    try {
      token =
          agents()
              .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(bearer))
              .registerAgent(RegisterAgentRequest.newBuilder().setAgent(agent).build())
              .getCredentialToken();
    } catch (StatusRuntimeException e) {
      channel.shutdownNow();
      throw e;
    }
  }

  /**
   * Checks the action, calls the body if it is allowed, and reports its end. People who have to approve the action are
   * waited for.
   *
   * @throws DeniedException the action must not be taken
   * @throws StatusRuntimeException the gateway has not answered, and the body was not called; or has not taken its end
   * @throws Exception whatever the body throws
   */
  public <T> T run(Action action, Callable<T> body) throws Exception {
    // The same ids in every attempt, so that it is one operation.
    CheckActionRequest request =
        CheckActionRequest.newBuilder()
            .setAgent(agent)
            .setCredentialToken(token)
            .setTraceId(newId(16))
            .setSpanId(newId(8))
            .setAction(action.name())
            .setResource(action.resource())
            .setAttributes(valueOf(action.attributes()).getStructValue())
            .setEstimatedCostUsd(action.estimatedCostUsd())
            .build();
    CheckActionResponse answer = admitted(request);
    if (answer.getDecision() != Decision.DECISION_ALLOW) {
      throw new DeniedException(action, answer);
    }
    T result;
    try {
      result = body.call();
    } catch (Throwable failure) {
      try {
        complete(answer, failure);
      } catch (StatusRuntimeException e) {
        failure.addSuppressed(e);
      }
      throw failure;
    }
    complete(answer, null);
    return result;
  }

  @Override
  public void close() throws InterruptedException {
    channel.shutdown().awaitTermination(CALL.toMillis(), TimeUnit.MILLISECONDS);
    channel.shutdownNow();
  }

  /** The answer of the gateway, and that of people where it leaves the action to them. */
  private CheckActionResponse admitted(CheckActionRequest request) throws InterruptedException {
    long end = System.nanoTime() + APPROVAL.toNanos();
    while (true) {
      CheckActionResponse answer =
          PolicyServiceGrpc.newBlockingStub(channel)
              .withWaitForReady()
              .withDeadlineAfter(CALL.toMillis(), TimeUnit.MILLISECONDS)
              .checkAction(request);
      if (answer.getDecision() != Decision.DECISION_PENDING) {
        return answer;
      }
      decided(answer.getApprovalId(), end);
    }
  }

  /** Waits until people have decided, also while the gateway restarts. What they have decided is known by asking again. */
  private void decided(String approvalId, long end) throws InterruptedException {
    WaitApprovalRequest request =
        WaitApprovalRequest.newBuilder()
            .setAgent(agent)
            .setCredentialToken(token)
            .setApprovalId(approvalId)
            .build();
    while (System.nanoTime() < end) {
      try {
        ApprovalState state =
            ApprovalServiceGrpc.newBlockingStub(channel)
                .withWaitForReady()
                .withDeadlineAfter(Math.min(end - System.nanoTime(), LONGEST_WAIT.toNanos()), TimeUnit.NANOSECONDS)
                .waitApproval(request)
                .getState();
        if (state != ApprovalState.APPROVAL_STATE_PENDING) {
          return;
        }
      } catch (StatusRuntimeException e) {
        Status.Code code = e.getStatus().getCode();
        if (code != Status.Code.UNAVAILABLE && code != Status.Code.DEADLINE_EXCEEDED) {
          throw e;
        }
      }
      Thread.sleep(ASK_AGAIN.toMillis());
    }
    throw Status.DEADLINE_EXCEEDED.withDescription("nobody has decided on approval " + approvalId).asRuntimeException();
  }

  private void complete(CheckActionResponse answer, Throwable failure) {
    CompleteOpRequest.Builder request =
        CompleteOpRequest.newBuilder()
            .setAgent(agent)
            .setCredentialToken(token)
            .setOpId(answer.getOpId())
            .setOpHome(answer.getOpHome())
            .setOutcome(failure == null ? Outcome.OUTCOME_SUCCESS : Outcome.OUTCOME_FAILURE);
    if (failure != null) {
      request.setError(beginningOf(failure.toString()));
    }
    agents().completeOp(request.build());
  }

  private AgentServiceGrpc.AgentServiceBlockingStub agents() {
    return AgentServiceGrpc.newBlockingStub(channel)
        .withWaitForReady()
        .withDeadlineAfter(CALL.toMillis(), TimeUnit.MILLISECONDS);
  }

  private static String beginningOf(String text) {
    String cut = text;
    while (cut.getBytes(StandardCharsets.UTF_8).length > MAX_ERROR_BYTES) {
      cut = cut.substring(0, Math.min(cut.length() - 1, MAX_ERROR_BYTES));
    }
    return cut;
  }

  private static String newId(int bytes) {
    byte[] id = new byte[bytes];
    RANDOM.nextBytes(id);
    return HexFormat.of().formatHex(id);
  }

  /** Attributes as the wire has them: maps, lists, texts, numbers, truth values and null. */
  private static Value valueOf(Object value) {
    Value.Builder built = Value.newBuilder();
    if (value == null) {
      return built.setNullValue(NullValue.NULL_VALUE).build();
    } else if (value instanceof Map<?, ?> map) {
      Struct.Builder struct = Struct.newBuilder();
      map.forEach((name, each) -> struct.putFields(String.valueOf(name), valueOf(each)));
      return built.setStructValue(struct).build();
    } else if (value instanceof List<?> list) {
      ListValue.Builder values = ListValue.newBuilder();
      list.forEach(each -> values.addValues(valueOf(each)));
      return built.setListValue(values).build();
    } else if (value instanceof Number number) {
      return built.setNumberValue(number.doubleValue()).build();
    } else if (value instanceof Boolean truth) {
      return built.setBoolValue(truth).build();
    }
    return built.setStringValue(String.valueOf(value)).build();
  }
}
