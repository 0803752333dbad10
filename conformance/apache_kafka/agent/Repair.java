import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * Changes one branch of an unmodified broker: a leader of a new epoch forgets what followers have fetched, also if it led
 * before (B21, docs/findings/remote-leo-kept.md).
 *
 * <p>{@code Partition.makeLeader} calls {@code Replica.resetReplicaState(now, leaderEpochStartOffset, isNewLeader,
 * isFollowerInSync)} for each follower when the leader epoch is new. It resets the follower's LEO only if isNewLeader.
 */
public final class Repair {
    private Repair() {}

    public static void premain(String arguments, Instrumentation instrumentation) {
        new AgentBuilder.Default()
                .disableClassFormatChanges()
                .type(namedOneOf("org.apache.kafka.server.replica.Replica", "kafka.cluster.Replica"))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(AsNewLeader.class).on(named("resetReplicaState"))))
                .installOn(instrumentation);
    }

    /** Runs before the body of resetReplicaState. */
    public static final class AsNewLeader {
        private AsNewLeader() {}

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) boolean isNewLeader) {
            isNewLeader = true;
        }
    }
}
