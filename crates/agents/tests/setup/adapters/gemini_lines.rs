//! What the lines of Gemini CLI's transcripts mean.

use super::samples::{Sample, lines};

fn assert_reads(sample: &str, expected: &str) {
    assert_eq!(Sample::named(sample).sketch(), lines(expected), "{sample}");
}

/// Two tools at once, whose results are with their calls and in a separate message; and the text of
/// a stop hook, which comes as a prompt.
#[test]
fn a_turn_of_gemini_reads_as_it_happened() {
    assert_reads(
        "gemini-turn",
        "
            prompt f90901d8
            injected &lt;baton-mail to=\"a\"&gt;/CTX-BeforeAgent-1/&lt;/baton-mail&
            response 3ae90da3-18c3-4470-8882-516941fecdea
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-1/&lt;/baton-mail&gt
            result run_shell_command__run_shell_command_1794794073720_0: <untrusted_context>/Output: one/Process Group PGID: 5074/</u
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-2/&lt;/baton-mail&gt
            result mcp_baton_who__mcp_baton_who_1794794073992_1: <untrusted_context>/{\"sessions\":[],\"you\":null}/</untrusted_c
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-1/&lt;/baton-mail&gt
            result run_shell_command__run_shell_command_1794794073720_0: <untrusted_context>/Output: one/Process Group PGID: 5074/</u
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-2/&lt;/baton-mail&gt
            result mcp_baton_who__mcp_baton_who_1794794073992_1: <untrusted_context>/{\"sessions\":[],\"you\":null}/</untrusted_c
            response 9a7961e1-9d1e-4c7a-b1e3-a643e27a5346
            injected <baton-mail to=\"a\">/CTX-AfterAgent-1/</baton-mail>
            response f37a14c7-307d-4d7b-b11c-2822349a2dc4
        ",
    );
}

/// Within the same minute: a second head and an empty conversation come before the one that goes
/// on.
#[test]
fn a_resumed_session_of_gemini_begins_with_what_it_goes_on_with() {
    assert_reads(
        "gemini-resumed",
        "
            prompt f90901d8
            injected &lt;baton-mail to=\"a\"&gt;/CTX-BeforeAgent-1/&lt;/baton-mail&
            response 3ae90da3-18c3-4470-8882-516941fecdea
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-1/&lt;/baton-mail&gt
            result run_shell_command__run_shell_command_1794794073720_0: <untrusted_context>/Output: one/Process Group PGID: 5074/</u
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-2/&lt;/baton-mail&gt
            result mcp_baton_who__mcp_baton_who_1794794073992_1: <untrusted_context>/{\"sessions\":[],\"you\":null}/</untrusted_c
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-1/&lt;/baton-mail&gt
            result run_shell_command__run_shell_command_1794794073720_0: <untrusted_context>/Output: one/Process Group PGID: 5074/</u
            injected &lt;baton-mail to=\"a\"&gt;/CTX-AfterTool-2/&lt;/baton-mail&gt
            result mcp_baton_who__mcp_baton_who_1794794073992_1: <untrusted_context>/{\"sessions\":[],\"you\":null}/</untrusted_c
            response 9a7961e1-9d1e-4c7a-b1e3-a643e27a5346
            injected <baton-mail to=\"a\">/CTX-AfterAgent-1/</baton-mail>
            response f37a14c7-307d-4d7b-b11c-2822349a2dc4
            replaced
            prompt dc41facd
            injected &lt;baton-mail to=\"a\"&gt;/CTX-BeforeAgent-3/&lt;/baton-mail&
            response 4b88ae89-cd2c-472a-8993-de043ff0af8b
        ",
    );
}

/// Esc while the model answers a prompt, while it answers tools (then it asks the model by itself),
/// again with a stop hook that would go on, and while one of two tools runs.
#[test]
fn gemini_takes_back_what_was_interrupted() {
    assert_reads(
        "gemini-interrupted",
        "
            injected &lt;m&gt;CTX-SessionStart-1&lt;/m&gt;
            prompt d05aedd1
            injected &lt;m&gt;CTX-BeforeAgent-1&lt;/m&gt;
            replaced
            prompt cbc053b8
            response 4e7b7d5f-b611-4ebe-a188-2d0b9472f00f
            injected &lt;m&gt;CTX-AfterTool-1&lt;/m&gt;</hook_context>
            result run_shell_command__run_shell_command_1794792782957_0: <untrusted_context>/Output: one/Process Group PGID: 618/</un
            injected &lt;m&gt;CTX-AfterTool-1&lt;/m&gt;</hook_context>
            result run_shell_command__run_shell_command_1794792782957_0: <untrusted_context>/Output: one/Process Group PGID: 618/</un
            replaced
            prompt d0c79d21
            response ac213654-2fb7-49e1-9aca-96e89ae1b763
            result run_shell_command__run_shell_command_1794792786992_0: <untrusted_context>/Output: quick/Process Group PGID: 695/</
            result run_shell_command__run_shell_command_1794792787001_1: <untrusted_context>/Output: slow/Process Group PGID: 698/</u
            result run_shell_command__run_shell_command_1794792786992_0: <untrusted_context>/Output: quick/Process Group PGID: 695/</
            result run_shell_command__run_shell_command_1794792787001_1: <untrusted_context>/Output: slow/Process Group PGID: 698/</u
            response b24077bb-30a0-4ae8-9d06-5edfc5c43ed7
            prompt 2330f27c
            replaced
            injected <baton-mail to=\"a\">/CTX-AfterAgent-1/</baton-mail>
            replaced
            prompt 76f9ec32
            response ae6aac50-c90e-49cb-ba29-b8a15b18dd2c
            result run_shell_command__run_shell_command_1794792821853_1: [Operation Cancelled] Reason: Operation cancelled by user
            injected &lt;m&gt;CTX-AfterTool-2&lt;/m&gt;</hook_context>
            result run_shell_command__run_shell_command_1794792821851_0: <untrusted_context>/Output: quick/Process Group PGID: 3238/<
            result run_shell_command__run_shell_command_1794792821853_1: [Operation Cancelled] Reason: Operation cancelled by user
            injected &lt;m&gt;CTX-AfterTool-2&lt;/m&gt;</hook_context>
            result run_shell_command__run_shell_command_1794792821851_0: <untrusted_context>/Output: quick/Process Group PGID: 3238/<
            prompt f464c33b
            response 97627fe4-36f8-4a2c-ad92-56420a7c0561
        ",
    );
}
