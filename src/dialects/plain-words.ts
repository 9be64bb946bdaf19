/**
 * Words of error messages, in English and of the APIs: they reveal nothing about a prompt,
 * however often it contains them.
 */
export const plainWords: ReadonlySet<string> = new Set(
  `
  a ability able abort aborted about above accept accepts access accessible account accounts across actual adapt
  adaptive add added additional address admin advanced affinity after again against agent ahead ai alike all allow
  allowance allowed allowedhosts allowedorigins almost alone along already although always among amount an and anew
  another answer answered answers anthropic any anything anywhere apart api appears application apply appropriate
  approved are argument arguments array arrays as ask asked asks assistant at attempt attempts audio auth
  authentication authorization authorize authorized automatic available avoid aware back background bad balance base
  based be bearer because become becomes been before begin behind being belong below beside between beyond billing
  block blocked blocks body both bound bracketed bring brings broke broken browser budget bug build busy but by
  bytes cache cached call called caller calls came can cancelled cannot carries cause caused causes certain
  certificate certificates change changed charset chat check choice choices choose chosen chunk claude clean clear
  client clients clock closed closing code com combination come comes common compatible compile complete completion
  completions complex component compressed concurrent condition config configure configured conflict connect
  connection connections consider consult contact contain contained containing contains content context control
  conversation converted copilot copy correct corresponding cost could count counted counter covered create created
  credential credits current currently custom data date deactivated debug declined decode decoding decrypted default
  defined definition delay delta denied deny dependency deployment deprecated describe description detail details
  detected determine device dialects did difference different digit directive directly disabled disallowed display
  distinct dns do docs document documentation does done double down dragoman drop due duplicate during each eager
  earlier edit editor effort effortin efforts either element elements eligible else email embedding embeddings empty
  enable enabled encoding encrypted end ended endpoint endpoints ends ensure enterprise entire entity entry enum
  environment ephemeral equal equivalent error estimate estimated even event events every everybody exact exactly
  example exceeded exceeds except exception exchanges exclude excluded execute execution exist expect expected
  expects expired expires expiry explicit exponential extended external extra fail failed fails failure fall false
  feature features fence fetch fetched few fewer field fields file files filter filtered find fine finish first fix
  fixed flag flagged floats follow followed for forbid forbidden forbids force forces foresaw form format formats
  found free from full function functions future gateway gave general generate generated generation generic get
  getting github githubcopilot give given gives global go goes going good got grammar grant great greater groups had
  handed handle handling handshake hangs happen happened happens harmful has hash have having he head header headers
  help helper helps her here hidden high higher history hit hold holds hops host hosts hour hours how html http
  https hung id identifier identify ids ietf if ignore ignored image images immediately implement implemented
  improve in include included includes including incomplete inconsistent incorrect index indicate individual
  information initial input inputs inside instead instructions insufficient integer integration intent interface
  internal interrupted interval into invalid invoke is issue issues it item items its itself join json just keep
  keeps kept key keys keyword know known knows lack lacks language large largest last latency later least leave
  leaves left length less let level levels like likely limit limited limits line lines list listed listening lists
  local locate locked log login long longer look looked looks loop low lower lowered machine made maintain
  maintenance makes malformed manage many map match matched matches matching max maximal maximum may means meant medium
  member members message messages metadata method mib midway mime minimum minute minutes misdirected mismatch
  mismatched missing mixed modalities mode model models modified modify moment month monthly more most multiple must
  name named names near necessarily necessary need needed needs nested net network never new newer next no nobody
  node non none nonempty normal not note nothing now null number oauth object objects obtain occur occurred occurs
  of off offer offered official offline often old omit omitted on once one ones only opaque open openai opened
  operation option optional options or order organization origin originally orphan other otherwise our out output
  outside over overage overload overloaded overridden own packets page pair paired parallel parameter parameters
  params parse parsed part partial particular pass passed path pattern payload pdf pending per perform period
  permission permissions permit permitted pieces place plain plan platform please plugin point policies policy poll
  port portal position possible possibly post prefill prefix premium present prevent previous previously pro
  probably problem process processed processing produce product programming prohibited promises prompt properly
  properties property provide provided provider proxies proxy purpose put question quickly quota rate ratelimit
  rather raw re reach reachable reached read reading reads ready real reason reasoning recognized recommended
  redirect reduce refer reference refusal refused refuses regex regular related release remaining reminder remove
  removed repeat repeated replace replayed reply reported request requested requests required requirement requires
  reserved reset resolve resolved resource resources response responses responsible rest restricted restriction
  restrictions rests result results retried retries retry return returned returns review revoked right role roles
  root rule rules run running runs safe safety same sample saved say saying says schema schemas scope scripted
  search sec second seconds section security see segment select selected send sending sent sequence serialize serve
  served server serves service session set settings several share short shorten should showing shown shutting side
  sign signature signed signing signs silence silent similar simple simply since single site size slot slots slow
  slowly smaller snapshot so socket some someone something sorry source space speak speaks specific specified
  specify spelling spent spoken standard stands start state statement states status stay stderr step still stop
  stopped stored stream streamed streaming strict string strings structure structured submit submitted subscription
  subsequent succeed succeeded success successful successfully such sufficient suffix suggest suitable summary
  supplied support supported supports switch system tags taken takes target tell temperature temporarily temporary
  term terms test text texts than that the them then there these they think thinking this those throttle throttled
  throttling through time timed timeout timers title tls to token tokenizer tokens too took tool tools top topic
  total traffic translated transport tried trigger triggered true trusted try trying tunnel turn two type types
  unable unauthorized unavailable unclear undefined under unexpected union unique unknown unless unlimited
  unprocessable unrecognized unsafe unsupported until up update updated upgrade upload upstream url usage use used
  user using usual usually valid validate validation value values variable verified verify version versions via
  violate violates violation visible vision visit wait waited waiting wants warning was way we web websocket week
  weekly well went were what whatever when where whether which while who whoever whole why window wish with within
  without word words work worker working would wrap writable write writer wrong wrote yes yet you your yourself zero
  integrator raise raised raising seat spend
  _ access_token account_suspended accounts_failed additional_tools after_id agent_mode_limit_exceeded
  allowed_callers allowed_tools api_error apply_patch_call array_above_max_length authentication_error
  authorization_pending authorize_url auto bash_tool billing_not_configured budget_tokens cache_control call_id
  citations_delta clear_thinking client_closed client_metadata code_execution code_interpreter computer_call
  computer_call_output content_block_delta content_block_start content_block_stop content_filter content_index
  content_part context_length_exceeded context_management copilot_cache_control copilot_quota_snapshots
  copilot_usage cot_summary count_tokens custom_tool_call custom_tool_call_input custom_tool_call_output data_url
  defer_loading developer developer_message device_code disable_parallel_tool_use duplicate_tool
  eager_input_streaming empty_array empty_string encoding_format encrypted_content end_turn
  exceeded_current_quota_error expired_token extension_blocked file_data file_id file_search finish_reason
  free_quota_exceeded free_quota_limit frequency_penalty function_call function_call_arguments function_call_output
  github_unavailable host_not_allowed image_content image_gen image_generation image_url in_progress include_usage
  inference_geo input_audio input_examples input_file input_image input_json_delta input_schema input_text
  insufficient_quota integer_above_max_value integer_below_min_value integration_rate_limited
  internal_chat_message_metadata_passthrough internal_error internal_server_error invalid_api_key
  invalid_encrypted_content invalid_function_parameters invalid_image invalid_prompt invalid_request
  invalid_request_body invalid_request_error invalid_type invalid_value is_error is_premium item_id item_reference
  json_object json_schema local_only local_shell_call logit_bias max_completion_tokens max_output_tokens max_tokens
  max_tool_calls mcp_call mcp_servers media_type message_delta message_start message_stop method_not_allowed minimal
  missing_required_parameter model_context_window_exceeded model_max_prompt_tokens_exceeded
  model_not_available_for_integrator model_not_enabled model_not_found model_not_offered model_not_supported
  model_overloaded model_suffix_not_supported no_account not_found not_found_error off_topic origin_not_allowed
  output_config output_format output_index output_item output_text overage_limit_reached overloaded_error
  parallel_tool_calls partial_json pause_turn permission_denied permission_error premium_interactions premium_models
  presence_penalty previous_response_id previous_response_not_found prompt_cache_key prompt_cache_retention
  provider_not_found provider_refused quota_exceeded quota_snapshots rate_limit rate_limit_error rate_limited
  reasoning_content reasoning_effort reasoning_opaque reasoning_summary_part reasoning_summary_text reasoning_text
  redacted_thinking request_id request_too_large response_format safety_identifier sequence_number server_error
  server_tool_use service_tier session_id shell_call sign_in_revoked signature_delta slow_down spammy_user
  stop_sequence stop_sequences stream_options string_above_max_length string_too_long summary_index summary_text
  text_delta thinking_budget thinking_delta timeout_error too_large too_many_tools tool_call_id tool_calls
  tool_choice tool_reference tool_result tool_search_output tool_use tool_use_id top_k top_logprobs top_p
  unknown_parameter unsupported_api_for_model unsupported_language unsupported_media unsupported_parameter
  unsupported_value upgrade_required upstream_bad_event upstream_bad_reply upstream_disconnected upstream_error
  upstream_invalid upstream_provider_rate_limit upstream_unreachable user_global_rate_limited user_id
  user_model_rate_limited user_request_timeout user_weekly_rate_limited web_fetch web_search web_search_call
  web_search_options web_search_result
  additional_spend_limit_reached client_not_allowed model_not_allowed model_not_available no_available_model_endpoints
  session_expired websocket_connection_limit_reached
`
    .trim()
    .split(/\s+/),
);
